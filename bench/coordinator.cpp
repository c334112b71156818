// What the actors cost: the devices are null devices, so the engine takes all the time.
//
//   call      one cached plan of one chunk on one null device: from call to result
//   fan-out   10,000 chunks over 4 null devices, 100 chains side by side
//   chain     1,000 chunks in one chain over 4 null devices
//
// Each of them also with sessions that are recorded in memory (`engine_options::recorder`).
//
// Options are Google Benchmark's. Prints the median and the 99th percentile of a run's time, the processor time of all
// threads in it, which a busy machine disturbs less, and of its time over its chunks (`a_chunk`).
#include "bench/growing_dims.hpp"
#include "bench/models.hpp"

#include <benchmark/benchmark.h>

#include <filesystem>

namespace {

using namespace troupe;
using namespace troupe::bench;

/// `chains` chains of `length` operators side by side, each from an input of its own.
built_model make_chains(size_t chains, size_t length) {
  model_builder m;
  std::vector<variable> ends;
  for (size_t c = 0; c < chains; ++c) {
    variable v = m.input("x" + std::to_string(c), dtype::float32, {4});
    for (size_t i = 0; i < length; ++i)
      v = m.call("Sigmoid", {v});
    ends.push_back(v);
  }
  return finish(m, ends);
}

/// Has runs of a model timed in `repetitions` of `iterations`.
void time(const std::string& name, const session& s, int iterations, int repetitions) {
  const named_tensors inputs = inputs_of(s.inputs(), {});
  const auto chunks = static_cast<double>(plan_of(s, inputs)->chunks.size());
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 while (state.KeepRunning())
                                   s.run(inputs);
                                 state.counters["a_chunk"] = {chunks, benchmark::Counter::kIsIterationInvariantRate |
                                                                          benchmark::Counter::kInvert};
                               })
      ->Iterations(iterations)
      ->Repetitions(repetitions)
      ->ComputeStatistics("p99", [](const std::vector<double>& all) { return quantile(all, 0.99); })
      ->DisplayAggregatesOnly()
      ->MeasureProcessCPUTime()
      ->UseRealTime();
}

/// The three cases on engines of their own; `suffix` ends their names.
struct engine_pair {
  engine_pair(const std::string& suffix, const recorder_options& recorder)
      : one({.devices = {"null"}, .recorder = recorder}), four({.devices = {"null*4"}, .recorder = recorder}) {
    const session_options alternating{.policy = placement_policy::round_robin, .fuse = false};
    time("call" + suffix, one.load(make_chains(1, 1)), 10, 2000);
    time("fan-out" + suffix, four.load(make_chains(100, 100), alternating), 1, 50);
    time("chain" + suffix, four.load(make_chains(1, 1'000), alternating), 1, 50);
  }

  engine one, four;
};

} // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const engine_pair plain("", {});
  const engine_pair recorded(", recorded", {.folder = std::filesystem::temp_directory_path().string(),
                                            .memory = size_t{64} << 20}); // no run fails, so no file is written
  benchmark::RunSpecifiedBenchmarks();
}
