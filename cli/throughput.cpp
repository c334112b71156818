#include "cli/throughput.hpp"

#include "base/elapsed.hpp"
#include "cli/strategy_options.hpp"
#include "run/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iostream>
#include <numeric>

namespace troupe::cli {
namespace {

/// The part of a pipeline's time in which stages wait for others while it fills and drains: (N − 1) / (M + N − 1), with
/// N stages and M micro-batches of a request (Huang et al., "GPipe", NeurIPS 2019).
double bubble_of(double stages, double micro_batches) {
  return (stages - 1) / (micro_batches + stages - 1);
}

/// Takes away what replicas had done before.
void subtract(stream_stats& from, const stream_stats& before) {
  for (size_t r = 0; r < before.replicas.size(); ++r) {
    from.replicas[r].pieces -= before.replicas[r].pieces;
    from.replicas[r].rows -= before.replicas[r].rows;
    from.replicas[r].busy_ms -= before.replicas[r].busy_ms;
  }
}

uint64_t pieces_of(const stream_stats& s) {
  return std::accumulate(s.replicas.begin(), s.replicas.end(), uint64_t{0},
                         [](uint64_t n, const replica_stats& r) { return n + r.pieces; });
}

} // namespace

throughput measure_throughput(const session& model, const named_tensors& inputs, const model_options& options,
                              int requests, int in_flight, const std::stop_token& stop) {
  throughput t{.in_flight = in_flight, .requests = requests, .queue = {}, .how = options.strategy};
  const stream_stats before = model.queue_stats();
  std::deque<std::future<run_result>> runs;
  const auto take = [&] {
    add(t.cost, runs.front().get().stats);
    runs.pop_front();
  };
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < requests; ++i) {
    runs.push_back(model.submit(inputs, {.cancel = stop}));
    if (std::ssize(runs) == in_flight)
      take();
  }
  while (!runs.empty())
    take();
  t.cost.total_ms = milliseconds_since(begin);
  t.queue = model.queue_stats();
  subtract(t.queue, before);
  t.micro_batches = static_cast<double>(pieces_of(t.queue)) / requests;
  // A pipeline leaves out devices that would not make it faster, and has others beside it that only help out.
  t.stages = static_cast<size_t>(std::count_if(t.cost.busy_ms.begin(), t.cost.busy_ms.end(),
                                               [](const auto& device) { return device.second > 0; }));
  return t;
}

void print(const throughput& t) {
  fmt::print("throughput {:.2f} requests/s ({:.4g} GFLOP/s) with {} in flight, parallel efficiency {:.0f} %\n",
             t.requests_per_s(), t.gflops_per_s(), t.in_flight, 100 * t.cost.parallel_efficiency());
  for (const auto& [name, ms] : t.cost.busy_ms)
    fmt::print("{} busy {:.0f} % of the time\n", name, 100 * ms / t.cost.total_ms);
  if (t.how == strategy::pipeline)
    fmt::print(
        "pipeline of {} stages, {:.1f} micro-batches a request: devices idle {:.1f} %, formula {:.1f} % with one "
        "request at a time\n",
        t.stages, t.micro_batches, 100 * (1 - t.cost.parallel_efficiency()),
        100 * bubble_of(static_cast<double>(t.stages), t.micro_batches));
  std::cout << replicas_text(t.queue, t.cost.total_ms);
}

nlohmann::json to_json(const throughput& t) {
  nlohmann::json j{{"in_flight", t.in_flight},
                   {"requests_per_s", t.requests_per_s()},
                   {"gflops_per_s", t.gflops_per_s()},
                   {"parallel_efficiency", t.cost.parallel_efficiency()},
                   {"replicas", replicas_json(t.queue, t.cost.total_ms)}};
  for (const auto& [name, ms] : t.cost.busy_ms)
    j["utilisation"][name] = ms / t.cost.total_ms;
  if (t.how == strategy::pipeline)
    j["pipeline"] = {{"stages", t.stages},
                     {"micro_batches", t.micro_batches},
                     {"idle", 1 - t.cost.parallel_efficiency()},
                     {"bubble", bubble_of(static_cast<double>(t.stages), t.micro_batches)}};
  return j;
}

} // namespace troupe::cli
