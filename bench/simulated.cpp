// Compares simulations with measurements on a grid of settings: first all predictions, then all measurements.
//
// Usage: bench_simulated predict GRID PREDICTIONS
//        bench_simulated measure GRID PREDICTIONS RESULTS [ROUNDS]
//
// `predict` simulates each setting on the devices here (and on hosts), as their profiles have them.
//
// GRID: a JSON list of {"model", "dims": {…}, "precision", "devices": […], "hosts": […], "policy", "strategy",
// "micro_batch", "requests", "in_flight"}; all but "model" and "devices" may be absent. A measurement is the time from
// the first request to the last answer, from ordinary memory; before each, the same requests are not timed for 200 ms,
// or for 500 ms after a setting of other devices, which let clocks fall; settings take turns, and the median of at
// least 20 rounds counts.
#include "bench/models.hpp"
#include "plan/place/policies.hpp"
#include "sim/cluster.hpp"
#include "strategy/replica_sets.hpp"
#include "troupe/simulation.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <deque>
#include <fstream>

using namespace troupe;
using namespace troupe::bench;
using json = nlohmann::json;

namespace {

constexpr std::chrono::milliseconds brief_warm_up{200}, long_warm_up{500};

struct setting {
  std::string name, file;
  engine_options where;
  session_options how;
  bindings dims;
  size_t requests = 1, in_flight = 1;
};

setting read_setting(const json& j) {
  setting s;
  s.file = j.at("model");
  s.where.devices = j.at("devices").get<std::vector<std::string>>();
  s.where.hosts = j.value("hosts", std::vector<std::string>());
  s.where.credentials.insecure = !s.where.hosts.empty(); // workers on this machine
  s.dims = j.value("dims", bindings());
  s.how.precision = j.value("precision", "fp32") == "fp16" ? precision::fp16 : precision::fp32;
  s.how.policy = parse_policy(j.value("policy", "single"));
  if (const std::string how = j.value("strategy", "none"); how != "none")
    s.how.strategy = parse_strategy(how);
  s.how.stream.micro_batch = j.value("micro_batch", 0);
  s.requests = j.value("requests", size_t{1});
  s.in_flight = j.value("in_flight", size_t{1});
  s.name = fmt::format("{} {} {} {} {} {} ×{}/{}", s.file.substr(s.file.rfind('/') + 1), fmt::join(s.dims, ","),
                       fmt::join(s.where.devices, "+"), to_string(s.how.policy), to_string(s.how.strategy),
                       s.how.precision == precision::fp16 ? "fp16" : "fp32", s.requests, s.in_flight);
  return s;
}

json read_json(const char* file) {
  std::ifstream in(file);
  return json::parse(in);
}

std::vector<setting> read_grid(const char* file) {
  std::vector<setting> all;
  for (const json& j : read_json(file))
    all.push_back(read_setting(j));
  return all;
}

/// The engines of all settings, one for each set of devices.
class engines {
public:
  engine& of(const setting& s) {
    auto& made = all_[fmt::format("{}|{}", fmt::join(s.where.devices, ","), fmt::join(s.where.hosts, ","))];
    if (!made)
      made = std::make_unique<engine>(s.where);
    return *made;
  }

private:
  std::map<std::string, std::unique_ptr<engine>> all_;
};

int predict_all(const std::vector<setting>& grid, const char* to) {
  json all = json::array();
  engines each;
  for (const setting& s : grid) {
    engine& e = each.of(s);
    simulation_options how{.cluster_text = sim::write_cluster(sim::captured(device_infos(e)))};
    how.session = s.how;
    how.requests = s.requests;
    how.warm_up = 20;
    how.arrivals.in_flight = s.in_flight;
    const session loaded = e.load(s.file);
    const simulation_report r = simulate(s.file, plain_inputs(loaded, s.dims), how);
    fmt::print("{:90} {:10.3f} ms{}\n", s.name, r.makespan_ms, r.failed > 0 ? " FAILED " + r.first_failure : "");
    all.push_back({{"setting", s.name}, {"makespan_ms", r.makespan_ms}, {"failed", r.failed}});
  }
  std::ofstream(to) << all.dump(1) << '\n';
  return EXIT_SUCCESS;
}

/// Returns the milliseconds from the first request to the last answer.
double makespan_of(const session& s, const named_tensors& inputs, const setting& how) {
  std::deque<std::future<run_result>> under_way;
  const auto begin = clock_type::now();
  for (size_t i = 0; i < how.requests; ++i) {
    if (under_way.size() == how.in_flight) {
      under_way.front().get();
      under_way.pop_front();
    }
    under_way.push_back(s.run_async(inputs));
  }
  for (auto& last : under_way)
    last.get();
  return milliseconds_since(begin);
}

double makespan_of(const session& s, const named_tensors& inputs, const setting& how,
                   std::chrono::milliseconds warm_up) {
  const auto warm = clock_type::now() + warm_up; // not timed: clocks that are up again
  do
    makespan_of(s, inputs, how);
  while (clock_type::now() < warm);
  return makespan_of(s, inputs, how);
}

/// Prints errors, and how many pairs of policies and strategies are ranked alike: of one model, dims and devices, those
/// that differ by more than a tenth as measured.
void summarise(const std::vector<setting>& grid, const json& results) {
  double sum = 0, worst = 0;
  size_t pairs = 0, alike = 0;
  for (size_t i = 0; i < grid.size(); ++i) {
    const double error = std::abs(results[i]["error"].get<double>());
    sum += error;
    worst = std::max(worst, error);
    for (size_t j = 0; j < i; ++j) {
      const auto same = [&](const setting& a, const setting& b) {
        return a.file == b.file && a.dims == b.dims && a.where.devices == b.where.devices &&
               a.where.hosts == b.where.hosts && a.requests == b.requests && a.how.precision == b.how.precision;
      };
      const double mi = results[i]["measured_ms"], mj = results[j]["measured_ms"];
      if (!same(grid[i], grid[j]) || std::max(mi, mj) < 1.1 * std::min(mi, mj))
        continue;
      ++pairs;
      alike += (mi < mj) == (results[i]["predicted_ms"].get<double>() < results[j]["predicted_ms"].get<double>());
    }
  }
  fmt::print("{} settings: mean error {:.1f} %, worst {:.1f} %; {} of {} pairs that differ are ranked alike\n",
             grid.size(), 100 * sum / static_cast<double>(grid.size()), 100 * worst, alike, pairs);
}

int measure_all(const std::vector<setting>& grid, const char* predictions, const char* to, int rounds) {
  const json predicted = read_json(predictions);
  engines each;
  std::vector<session> sessions;
  std::vector<named_tensors> inputs;
  for (const setting& s : grid) {
    sessions.push_back(each.of(s).load(s.file, s.how));
    inputs.push_back(plain_inputs(sessions.back(), s.dims));
    makespan_of(sessions.back(), inputs.back(), s, brief_warm_up);
  }
  std::vector<std::vector<double>> samples(grid.size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < grid.size(); ++i) {
      const bool same_devices = i > 0 && grid[i].where.devices == grid[i - 1].where.devices;
      samples[i].push_back(makespan_of(sessions[i], inputs[i], grid[i], same_devices ? brief_warm_up : long_warm_up));
    }
  json results = json::array();
  for (size_t i = 0; i < grid.size(); ++i) {
    const double measured = median(samples[i]), expected = predicted.at(i).at("makespan_ms");
    const double error = expected / measured - 1;
    fmt::print("{:90} predicted {:10.3f} measured {:10.3f} [{:.3f} {:.3f}] ms {:+6.1f} %\n", grid[i].name, expected,
               measured, quantile(samples[i], 0.1), quantile(samples[i], 0.9), 100 * error);
    results.push_back({{"setting", grid[i].name},
                       {"predicted_ms", expected},
                       {"measured_ms", measured},
                       {"error", error},
                       {"samples_ms", samples[i]}});
  }
  summarise(grid, results);
  std::ofstream(to) << results.dump() << '\n';
  return EXIT_SUCCESS;
}

} // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "predict" && argc == 4)
    return predict_all(read_grid(argv[2]), argv[3]);
  if (what == "measure" && argc >= 5)
    return measure_all(read_grid(argv[2]), argv[3], argv[4], argc > 5 ? std::stoi(argv[5]) : 21);
  fmt::print(stderr, "usage: bench_simulated predict GRID PREDICTIONS | measure GRID PREDICTIONS RESULTS [ROUNDS]\n");
  return 2;
}
