// Compares what `strategy::automatic` chooses with the best of all that it could have chosen, as measured: first all
// predictions, then all measurements.
//
// Usage: bench_choices MODEL fp32|fp16 DEVICE[,DEVICE…] [DIM=VALUE…]      devices as in `engine_options::devices`
//
// For one kind of request, in ordinary memory of the caller: latency is the median of requests one at a time;
// throughput is of 2 requests for each device under way. All in turns, three times; medians. A candidate is measured on
// its own devices alone, without the CPU that helps a GPU out: for models whose nodes all run on each device.
#include "bench/models.hpp"
#include "plan/place/policies.hpp"
#include "strategy/replica_sets.hpp"

#include <fmt/ranges.h>

#include <deque>
#include <sstream>

using namespace troupe;
using namespace troupe::bench;

namespace {

constexpr int rounds = 3;
constexpr double budget_ms = 400; // of a candidate in a round
constexpr int fewest = 1;         // runs

struct job {
  std::string file;
  session_options how;
  bindings dims;
};

struct measured {
  double latency_ms = 0, requests_per_s = 0;
};

double latency_of(const session& s, const named_tensors& inputs, double for_ms) {
  const double least = time_calls([&] { return s.run(inputs); }, fewest, 2) / 1e3; // plans, kernels, clocks
  const int runs = static_cast<int>(for_ms / std::max(least, 1e-3));
  return runs <= fewest ? least : time_calls([&] { return s.run(inputs); }, runs, runs / 4) / 1e3;
}

double rate_of(const session& s, const named_tensors& inputs, size_t devices, int least_requests) {
  const size_t in_flight = 2 * devices;
  const int requests = std::max<int>(2 * static_cast<int>(in_flight), least_requests);
  std::deque<std::future<run_result>> under_way;
  clock_type::time_point begin;
  for (int i = -static_cast<int>(in_flight); i < requests; ++i) { // the first ones fill
    if (i == 0)
      begin = clock_type::now();
    under_way.push_back(s.submit(inputs));
    if (under_way.size() > in_flight) {
      under_way.front().get();
      under_way.pop_front();
    }
  }
  const double rate = requests / milliseconds_since(begin) * 1e3;
  for (auto& last : under_way)
    last.get();
  return rate;
}

std::string name_of(const strategy_choice& c) {
  return fmt::format("{}/{}/{}", to_string(c.strategy), to_string(c.policy), fmt::join(c.devices, "+"));
}

struct candidate {
  strategy_choice predicted;
  session model;
  named_tensors inputs;
  std::vector<double> latencies = {}, rates = {};
};

/// Returns what each candidate of an engine reaches, by name, without those that are not possible. Candidates take
/// turns; the figures are medians.
std::map<std::string, measured> measure_all(engine& e, const job& j, const std::vector<strategy_choice>& choices) {
  std::vector<candidate> candidates;
  for (const strategy_choice& c : choices)
    if (c.possible) {
      session_options how = j.how;
      how.strategy = c.strategy;
      how.policy = c.policy;
      how.devices = c.devices;
      const session s = e.load(j.file, how);
      candidates.push_back({c, s, plain_inputs(s, j.dims)});
    }
  for (int round = 0; round < rounds; ++round)
    for (candidate& c : candidates) {
      c.latencies.push_back(latency_of(c.model, c.inputs, budget_ms / 2));
      c.rates.push_back(
          rate_of(c.model, c.inputs, c.predicted.devices.size(), static_cast<int>(budget_ms / 2 / c.latencies.back())));
    }
  std::map<std::string, measured> all;
  for (const candidate& c : candidates) {
    const measured m = all[name_of(c.predicted)] = {median(c.latencies), median(c.rates)};
    fmt::print("{:60} predicted {:9.3f} ms {:9.1f}/s, measured {:9.3f} ms {:9.1f}/s\n", name_of(c.predicted),
               c.predicted.latency_ms, c.predicted.requests_per_s, m.latency_ms, m.requests_per_s);
  }
  return all;
}

std::vector<strategy_choice> predict(engine& e, const job& j, objective goal) {
  session_options how = j.how;
  how.choice.goal = goal;
  const session s = e.load(j.file, how);
  std::vector<strategy_choice> all = s.compare(plain_inputs(s, j.dims));
  fmt::print("goal {}: {} is chosen: {}\n", goal == objective::latency ? "latency" : "throughput", name_of(all[0]),
             all[0].why);
  return all;
}

void tell(const char* goal, const strategy_choice& chosen, const std::map<std::string, measured>& all,
          double (*badness)(const measured&)) {
  const auto best = std::min_element(
      all.begin(), all.end(), [&](const auto& a, const auto& b) { return badness(a.second) < badness(b.second); });
  const double ratio = badness(all.at(name_of(chosen))) / badness(best->second);
  fmt::print("CELL {:10} auto {:50} is {:.3f} of the best, {}\n", goal, name_of(chosen), 1 / ratio, best->first);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: bench_choices MODEL fp32|fp16 DEVICE[,DEVICE…] [DIM=VALUE…]\n");
    return 2;
  }
  job j{argv[1], {.precision = std::string_view(argv[2]) == "fp16" ? precision::fp16 : precision::fp32}, {}};
  std::vector<std::string> devices;
  std::istringstream list(argv[3]);
  for (std::string name; std::getline(list, name, ',');)
    devices.push_back(name);
  j.dims = dims_of(std::span(argv, static_cast<size_t>(argc)).subspan(4));
  fmt::print("== {} {} {} {}\n", j.file, argv[2], argv[3],
             fmt::join(std::vector<std::string>(argv + 4, argv + argc), " "));
  engine e({.devices = devices});
  const auto latency = predict(e, j, objective::latency), throughput = predict(e, j, objective::throughput);
  const auto all = measure_all(e, j, latency);
  tell("latency", latency[0], all, [](const measured& m) { return m.latency_ms; });
  tell("throughput", throughput[0], all, [](const measured& m) { return 1 / m.requests_per_s; });
}
