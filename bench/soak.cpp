// Many small requests from several threads through a session's queue, with dynamic batching; then requests at twice the
// rate that it can serve.
//
// Usage: bench_soak [requests [threads [device…]]]      default 1000000 8 cpu
//
// Prints latencies and memory on the way, and at the end how many answers were lost, wrong or out of order (must be 0).
// Overload: requests with a deadline of 50 ms at twice the rate of before; what is served then should be at least 0.9
// of it, and latency normal at once afterwards.
#include "bench/models.hpp"

#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::bench;

namespace {

constexpr int64_t width = 16;

/// y = 2 x + 1, by a product, so that there is something to compute.
built_model small_model() {
  model_builder m;
  const variable x = m.input("x", dtype::float32, {dim::symbol("batch"), width});
  tensor twice(dtype::float32, {width, width}), one(dtype::float32, {width});
  for (int64_t i = 0; i < width * width; ++i)
    twice.mutable_data<float>()[i] = i % (width + 1) == 0 ? 2.0f : 0.0f;
  std::fill_n(one.mutable_data<float>(), width, 1.0f);
  return finish(m, {m.call("Add", {m.call("MatMul", {x, m.constant(twice)}), m.constant(one)})});
}

named_tensors request(int64_t number) {
  tensor x(dtype::float32, {1, width});
  std::fill_n(x.mutable_data<float>(), width, static_cast<float>(number % 100'000));
  return {{"x", x}};
}

bool is_right(const run_outcome& o, int64_t number) {
  const auto values = o.result.outputs.at("y").values<float>();
  return std::all_of(values.begin(), values.end(),
                     [&](float v) { return v == 2.0f * static_cast<float>(number % 100'000) + 1.0f; });
}

double resident_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:"))
      return std::stod(line.substr(6)) / 1024;
  return 0;
}

/// Outcomes of requests. Callbacks run one after the other, so only `done` is shared.
struct tally {
  std::atomic<int64_t> done = 0;
  int64_t good = 0, late = 0, wrong = 0, disordered = 0;
  std::vector<int64_t> last; // by submitter: the newest request that was answered
  std::vector<double> latencies_ms;

  explicit tally(size_t submitters) : last(submitters, -1) {}

  void take(const run_outcome& o, size_t submitter, int64_t number) {
    disordered += number <= last[submitter];
    last[submitter] = number;
    if (o.failure)
      (o.failure->code() == errc::timeout ? late : wrong) += 1;
    else if (is_right(o, number))
      ++good;
    else
      ++wrong;
    if (!o.failure)
      latencies_ms.push_back(o.result.stats.total_ms);
    ++done;
  }

  void wait(int64_t all) const {
    while (done < all)
      std::this_thread::sleep_for(1ms);
  }
};

void print(const char* what, tally& t, double seconds) {
  std::vector<double>& ms = t.latencies_ms;
  fmt::print("{:12} {:9} answers, {:8.0f} a second good, {} late, {} wrong, {} out of order; median {:.2f} ms, p99 "
             "{:.2f}; {:.0f} MiB\n",
             what, t.done.load(), static_cast<double>(t.good) / seconds, t.late, t.wrong, t.disordered,
             ms.empty() ? 0 : median(ms), ms.empty() ? 0 : quantile(ms, 0.99), resident_mib());
  ms.clear();
}

/// Each thread submits as fast as the queue takes requests; returns the requests a second.
double soak(const session& s, int64_t requests, size_t threads, int64_t& bad) {
  tally t(threads);
  const auto each = requests / static_cast<int64_t>(threads);
  const auto begin = clock_type::now();
  std::vector<std::jthread> submitters;
  for (size_t who = 0; who < threads; ++who)
    submitters.emplace_back([&, who] {
      for (int64_t i = 0; i < each; ++i)
        s.submit(request(i), {.priority = static_cast<int>(who == 0)},
                 [&t, who, i](const run_outcome& o) { t.take(o, who, i); });
    });
  for (int tenth = 1; tenth < 10; tenth += 3) {
    t.wait(each * static_cast<int64_t>(threads) * tenth / 10);
    fmt::print("{:11}0 % {:.0f} MiB\n", tenth, resident_mib());
  }
  submitters.clear();
  t.wait(each * static_cast<int64_t>(threads));
  const double seconds = milliseconds_since(begin) / 1e3;
  print("soak", t, seconds);
  bad += t.wrong + t.late + t.disordered + (each * static_cast<int64_t>(threads) - t.done);
  return static_cast<double>(t.good) / seconds;
}

/// Several threads offer requests at a rate together, as far as the queue takes them; returns the good ones a second.
double offer(const char* what, const session& s, double per_second, double seconds, int64_t& bad) {
  constexpr size_t threads = 8;
  tally t(threads);
  std::atomic<int64_t> submitted = 0;
  const auto begin = clock_type::now();
  std::vector<std::jthread> submitters;
  for (size_t who = 0; who < threads; ++who)
    submitters.emplace_back([&, who] {
      int64_t mine = 0;
      const auto passed = [&] { return milliseconds_since(begin) / 1e3; };
      const auto is_due = [&] { return static_cast<double>(mine) < passed() * per_second / threads; };
      while (passed() < seconds) {
        for (; is_due() && passed() < seconds; ++mine)
          s.submit(request(mine), {.timeout = 50ms}, [&t, who, mine](const run_outcome& o) { t.take(o, who, mine); });
        std::this_thread::sleep_for(1ms);
      }
      submitted += mine;
    });
  submitters.clear();
  t.wait(submitted);
  const double took = milliseconds_since(begin) / 1e3;
  print(what, t, took);
  bad += t.wrong + (submitted - t.done);
  return static_cast<double>(t.good) / took;
}

} // namespace

int main(int argc, char** argv) {
  const int64_t requests = argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 1'000'000;
  const size_t threads = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 8;
  const std::vector<std::string> devices =
      argc > 3 ? std::vector<std::string>(argv + 3, argv + argc) : std::vector<std::string>{"cpu"};
  engine e({.devices = devices});
  const stream_options stream{.max_batch = 64, .max_delay = 200us, .queue_limit = 1024, .ordered = true};
  const auto how = devices.size() > 1 ? strategy::work_stealing : strategy::none;
  const session s = e.load(small_model(), {.strategy = how, .stream = stream});
  int64_t bad = 0;
  const double best = soak(s, requests, threads, bad);
  stream_options any_order = stream;
  any_order.ordered = false;
  const session busy = e.load(small_model(), {.strategy = how, .stream = any_order});
  offer("half", busy, best / 2, 2, bad);
  const double overloaded = offer("twice", busy, 2 * best, 5, bad);
  offer("half again", busy, best / 2, 2, bad);
  fmt::print("{} lost, wrong or out of order; overload serves {:.2f} of the best\n", bad, overloaded / best);
  return bad == 0 ? 0 : 1;
}
