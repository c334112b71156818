// Four GPUs, one of which dies at a seeded moment: every run must give the right result from the others, and the engine
// must say which GPU was lost. Prints where the moments fell. The four are instances of GPU 0, so any machine will do.
//
// Usage: bench_losses [engines] [seed]      default 500 1
#include "bench/models.hpp"
#include "vulkan/vulkan_device.hpp"

#include <map>
#include <random>

using namespace troupe;
using namespace troupe::bench;

namespace {

constexpr size_t gpu_count = 4, runs_each = 3;
constexpr int chunks_each = 4;     // of a GPU in a run
constexpr int64_t elements = 1024; // of every value

/// A chain that visits the GPUs in turn, `chunks_each` times: adds 0, 1, 2 … to zeros.
built_model circle() {
  model_builder m;
  variable v = m.input("x", dtype::float32, {elements});
  for (size_t i = 0; i < gpu_count * chunks_each; ++i)
    v = m.call("Add", {v, m.constant(tensor::scalar(static_cast<float>(i)))});
  return finish(m, {v});
}

/// Opens four GPUs, of which `victim` is lost from its submission `lose_at` on.
std::vector<device_factory> gpus(const std::shared_ptr<const vulkan::instance>& instance, size_t victim,
                                 uint64_t lose_at) {
  std::vector<device_factory> made;
  for (size_t i = 0; i < gpu_count; ++i)
    made.push_back([instance, i, lose_at = i == victim ? lose_at : UINT64_MAX] {
      return vulkan::make_vulkan_device(instance, 0, fmt::format("vulkan:0#{}", i), {.lose_at = lose_at});
    });
  return made;
}

bool is_right(const tensor& result) {
  constexpr float added = gpu_count * chunks_each * (gpu_count * chunks_each - 1) / 2.f;
  const auto values = result.values<float>();
  return std::all_of(values.begin(), values.end(), [](float v) { return v == added; });
}

/// Returns what is wrong with the runs of one engine whose GPU `victim` dies at `lose_at`; empty if nothing is. `phase`
/// gets what the engine was doing at that moment.
std::string run_engine(const std::shared_ptr<const vulkan::instance>& instance, size_t victim, uint64_t lose_at,
                       std::string& phase) {
  engine e = make_engine({.devices = {}}, {.custom_devices = gpus(instance, victim, lose_at)});
  const session model = e.load(circle(), {.policy = placement_policy::round_robin, .fuse = false});
  phase = "after the last run";
  for (size_t run = 0; run < runs_each; ++run) {
    const run_result result =
        model.run({{"x", filled(e, dtype::float32, {elements})}}, {.timeout = std::chrono::minutes(1)});
    if (!is_right(result.outputs.at("y")))
      return fmt::format("run {} gave a wrong result", run);
    if (result.stats.lost_devices.empty())
      continue;
    if (result.stats.lost_devices != std::vector{fmt::format("vulkan:0#{}", victim)})
      return fmt::format("run {} names another lost device: {}", run, fmt::join(result.stats.lost_devices, ", "));
    phase = fmt::format("a submission of run {} in flight", run);
  }
  return {};
}

} // namespace

int main(int argc, char** argv) {
  try {
    const int engines = argc > 1 ? std::stoi(argv[1]) : 500;
    std::mt19937_64 random(argc > 2 ? std::stoull(argv[2]) : 1);
    const auto instance = std::make_shared<const vulkan::instance>();
    std::map<std::string, int> phases;
    int wrong = 0;
    for (int i = 0; i < engines; ++i) {
      // A quarter of the moments is never reached.
      const uint64_t lose_at = 1 + random() % (runs_each * chunks_each * 4 / 3);
      std::string phase;
      const std::string problem = run_engine(instance, random() % gpu_count, lose_at, phase);
      wrong += !problem.empty();
      if (!problem.empty())
        fmt::print("engine {} (lost at submission {}): {}\n", i, lose_at, problem);
      ++phases[phase];
    }
    for (const auto& [phase, count] : phases)
      fmt::print("{:50} {:5} {:5.1f} %\n", phase, count, 100.0 * count / engines);
    fmt::print("{} engines, {} wrong\n", engines, wrong);
    return wrong == 0 ? 0 : 1;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "bench_losses: {}\n", problem.what());
    return 1;
  }
}
