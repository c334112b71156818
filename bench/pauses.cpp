// What a pause before a run costs that run: idle devices lower their clocks, and a device that waits for others is
// idle.
//
// Usage: bench_pauses MODEL DEVICE [DIM=VALUE…]
//
// Prints the median time of a run, and of its work on the device, by the pause before it.
#include "bench/models.hpp"

#include <thread>

using namespace troupe;
using namespace troupe::bench;

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench_pauses MODEL DEVICE [DIM=VALUE…]\n");
    return 2;
  }
  const bindings dims = dims_of(std::span(argv, static_cast<size_t>(argc)).subspan(3));
  engine e({.devices = {argv[2]}});
  const session s = e.load(argv[1]);
  named_tensors inputs;
  for (const value_info& input : s.inputs())
    inputs.emplace(input.name, filled(e, input.type, evaluate(*input.dims, dims)));
  for (const auto end = clock_type::now() + std::chrono::seconds(1); clock_type::now() < end;)
    s.run(inputs);
  for (const double pause_ms : {0., 0.5, 1., 2., 5., 20., 100.}) {
    std::vector<double> wall, busy;
    const auto begin = clock_type::now();
    while (wall.size() < 20 || milliseconds_since(begin) < 500) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(pause_ms));
      const run_stats cost = s.run(inputs).stats;
      wall.push_back(cost.total_ms);
      busy.push_back(cost.busy_ms.empty() ? 0 : cost.busy_ms[0].second);
    }
    fmt::print("pause {:6.1f} ms: run {:8.3f} ms, device {:8.3f} ms\n", pause_ms, median(wall), median(busy));
  }
}
