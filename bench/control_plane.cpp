// What many workers cost a session's process, with devices that compute nothing: bench_control_plane [IN_MEMORY
// [OVER_TLS]]
//
// Up to IN_MEMORY workers (default 1000) in this process, joined by links in memory, and up to OVER_TLS (default 100)
// processes `troupe worker`, joined by TLS over the loopback. For each number of workers:
//
//   join      of the last worker, and of all of them together
//   message   a run of one chunk on the first worker, from call to result: median of 500
//   all       the first and a later run of one that has a chunk on each worker: the first makes the plan and sends it
//             to all
//   (cpu)     the same in processor time of all threads of this process, which a busy machine disturbs less
//   idle      processor time of this process in a second in which nothing runs: what heartbeats cost (links in memory
//             have none)
//   memory    by worker: of this process (in memory: of both sides)
//   links     between workers: after all have joined and been used one by one, and after the run over all of them
//
// Last, the power of the number of workers with which each figure grows: 0 for a figure that does not grow, 1 for one
// to which each worker adds its share.
#include "bench/models.hpp"
#include "device/null_device.hpp"
#include "support/certificate_folder.hpp"
#include "support/far_device.hpp"
#include "support/worker_process.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

namespace {

using namespace troupe;
using namespace troupe::bench;

constexpr int messages = 500, later_runs = 5;

double processor_ms() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& t) {
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

double resident_kb() {
  malloc_trim(0);
  std::ifstream in("/proc/self/statm");
  double pages = 0, resident = 0;
  in >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

/// A chain of operators, which round-robin places one by one on as many devices.
built_model chain_of(size_t length) {
  model_builder m;
  variable v = m.input("x", dtype::float32, {4});
  for (size_t i = 0; i < length; ++i)
    v = m.call("Sigmoid", {v});
  return finish(m, {v});
}

/// What was measured with one number of workers.
struct row {
  size_t workers = 0;
  double last_join_ms = 0, message_us = 0, first_ms = 0, later_ms = 0;
  double joins_cpu_ms = 0, message_cpu_us = 0, first_cpu_ms = 0, later_cpu_ms = 0;
  double idle_ms = 0, worker_kb = 0;
  size_t links_before = 0, links_after = 0;
};

/// Measures workers that `join(i)` lets join one by one; `links` counts links between workers.
row measure(engine& e, size_t workers, const std::function<void(size_t)>& join, const std::function<size_t()>& links) {
  row r{.workers = workers};
  const double before_kb = resident_kb();
  double cpu = processor_ms();
  const auto lap = [&] {
    const double from = std::exchange(cpu, processor_ms());
    return cpu - from;
  };
  for (size_t i = 0; i < workers; ++i) {
    const auto one = clock_type::now();
    join(i);
    r.last_join_ms = milliseconds_since(one);
  }
  r.joins_cpu_ms = lap();
  r.worker_kb = (resident_kb() - before_kb) / static_cast<double>(workers);
  lap();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  r.idle_ms = lap();
  const named_tensors x{{"x", tensor(dtype::float32, {4})}};
  const session one = e.load(chain_of(1), {.pins = {{"*", device_infos(e).at(1).name}}, .fuse = false});
  one.run(x);
  lap();
  r.message_us = time_runs(one, x, messages, 0);
  r.message_cpu_us = 1e3 * lap() / messages;
  r.links_before = links();
  const session all = e.load(chain_of(workers + 1), {.policy = placement_policy::round_robin, .fuse = false});
  lap();
  const auto first = clock_type::now();
  all.run(x);
  r.first_ms = milliseconds_since(first);
  r.first_cpu_ms = lap();
  r.later_ms = time_runs(all, x, later_runs, 0) * 1e-3;
  r.later_cpu_ms = lap() / later_runs;
  r.links_after = links();
  return r;
}

row measure_in_memory(size_t workers) {
  static std::atomic<size_t> links;
  links = 0;
  std::vector<std::unique_ptr<test::far_host>> hosts;
  const auto connect_peer = [&](const std::string& address) {
    ++links;
    remote::frame answer;
    const size_t number = std::stoul(address.substr(1));
    return hosts.at(number)->open(remote::encode(remote::hello{.role = remote::role::peer}), answer);
  };
  auto offers = std::make_shared<remote::outbox>();
  engine e({.devices = {"null"}});
  const auto join = [&](size_t i) {
    hosts.push_back(std::make_unique<test::far_host>(
        std::vector<std::shared_ptr<device>>{std::make_shared<null_device>(device_info{
            .name = "null", .kind = device_kind::null, .description = "runs nothing", .memory_bytes = INT64_MAX / 2})},
        remote::service_options{.connect_peer = connect_peer}, fmt::format("w{}", i)));
    const auto client = hosts.back()->connect(offers);
    add_devices(e, {[client] { return remote::make_remote_device(client, 0); }});
  };
  return measure(e, workers, join, [] { return links.load(); });
}

/// Returns how many connections of this machine lead to one of these ports.
size_t connections_to(const std::set<uint16_t>& ports) {
  constexpr const char* established = "01";
  std::ifstream in("/proc/net/tcp");
  size_t count = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string number, from, to, state;
    words >> number >> from >> to >> state;
    count += state == established &&
             ports.contains(static_cast<uint16_t>(std::stoul(to.substr(to.find(':') + 1), nullptr, 16)));
  }
  return count;
}

row measure_over_tls(size_t workers) {
  const test::certificate_folder keys({"worker", "session"});
  const host_credentials who = keys.of("worker");
  std::vector<std::unique_ptr<test::worker_process>> processes;
  std::set<uint16_t> ports;
  for (size_t i = 0; i < workers; ++i) {
    processes.push_back(std::make_unique<test::worker_process>(
        std::vector<std::string>{"--devices", "null", "--weights", keys.file(fmt::format("weights{}", i)), "--tls-cert",
                                 who.certificate, "--tls-key", who.key, "--tls-ca", who.ca}));
    ports.insert(processes.back()->port());
  }
  engine e({.devices = {"null"}, .credentials = keys.of("session")});
  const auto join = [&](size_t i) { e.add_host(fmt::format("w{}=127.0.0.1:{}", i, processes[i]->port())); };
  return measure(e, workers, join, [&] { return connections_to(ports) - workers; });
}

/// Measures in a process of its own, so that the remains of one measurement do not disturb the next.
row measure_apart(row (*measure_with)(size_t), size_t workers) {
  int ends[2];
  if (pipe(ends) != 0)
    fail(errc::io, "no pipe for a measurement");
  const pid_t child = fork(); // this process has no threads
  if (child == 0) {
    int status = 1;
    try {
      const row r = measure_with(workers);
      status = write(ends[1], &r, sizeof r) == sizeof r ? 0 : 1;
    } catch (const std::exception& problem) {
      fmt::print(stderr, "bench_control_plane: {}\n", problem.what());
    }
    _exit(status);
  }
  close(ends[1]);
  row r;
  const bool measured = read(ends[0], &r, sizeof r) == sizeof r;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!measured)
    fail(errc::io, "{} workers could not be measured", workers);
  return r;
}

/// Returns b of the line y = a·x^b through the rows, by least squares of the logarithms.
double power_of(const std::vector<row>& rows, double row::*y) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const row& r : rows) {
    const double lx = std::log(static_cast<double>(r.workers)), ly = std::log(std::max(r.*y, 1e-3));
    n += 1, sx += lx, sy += ly, sxx += lx * lx, sxy += lx * ly;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

/// A column of the table.
struct column {
  const char* title;
  double row::*value;
  int decimals;
};
constexpr column columns[] = {{"last join ms", &row::last_join_ms, 1}, {"joins ms (cpu)", &row::joins_cpu_ms, 0},
                              {"message µs", &row::message_us, 0},     {"(cpu)", &row::message_cpu_us, 0},
                              {"all: first ms", &row::first_ms, 0},    {"(cpu)", &row::first_cpu_ms, 0},
                              {"later ms", &row::later_ms, 1},         {"(cpu)", &row::later_cpu_ms, 1},
                              {"idle ms", &row::idle_ms, 1},           {"memory KiB", &row::worker_kb, 0}};

void report(const char* title, size_t most, row (*measure_with)(size_t)) {
  fmt::print("{}\n{:>8}", title, "workers");
  for (const column& c : columns)
    fmt::print(" | {}", c.title);
  fmt::print(" | links\n");
  std::vector<row> rows;
  for (const size_t workers : {1, 10, 30, 100, 300, 1000, 3000}) {
    if (workers > most)
      break;
    rows.push_back(measure_apart(measure_with, workers));
    const row& r = rows.back();
    fmt::print("{:8}", r.workers);
    for (const column& c : columns)
      fmt::print(" | {:.{}f}", r.*c.value, c.decimals);
    fmt::print(" | {}, {}\n", r.links_before, r.links_after);
    std::fflush(stdout);
  }
  if (rows.size() < 3)
    return;
  rows.erase(rows.begin()); // one worker is not a cluster
  fmt::print("{:>8}", "power");
  for (const column& c : columns)
    fmt::print(" | {:.2f}", power_of(rows, c.value));
  fmt::print("\n");
}

} // namespace

int main(int argc, char** argv) {
  try {
    report("links in memory", argc > 1 ? std::stoul(argv[1]) : 1000, measure_in_memory);
    report("processes, TLS", argc > 2 ? std::stoul(argv[2]) : 100, measure_over_tls);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "bench_control_plane: {}\n", problem.what());
    return 1;
  }
}
