// How long simulations take: a chain over 10,000 virtual devices, node by node, from a thousand chunks to a million,
// without the time of planning.
//
// Usage: bench_simulation [CHUNKS…]      (default 1000 10000 100000 1000000)
#include "troupe/simulation.hpp"
#include "troupe/troupe.hpp"

#include <fmt/format.h>

#include <sys/resource.h>

using namespace troupe;

namespace {

constexpr size_t width = 100; // chains side by side

/// Chains of `count` nodes in all.
built_model chains(size_t count) {
  model_builder m;
  std::vector<variable> ends;
  for (size_t i = 0; i < width; ++i) // of its own each: equal chains would be one
    ends.push_back(m.input("x" + std::to_string(i), dtype::float32, {4}));
  for (size_t i = 0; i < count; ++i)
    ends[i % width] = m.sigmoid(ends[i % width]);
  for (size_t i = 0; i < width; ++i)
    m.output("y" + std::to_string(i), ends[i]);
  return m.build();
}

std::string cluster_of(size_t devices) {
  const size_t hosts = devices / 8;
  return fmt::format(
      R"({{"version": 1, "hosts": [{{"name": "node", "count": {}, "link": {{"bytes_per_s": 1e10, "latency_s": 1e-5}},
    "devices": [{{"name": "gpu", "count": 8, "kind": "vulkan", "units": 132, "memory_bytes": 80000000000}}]}}]}})",
      hosts);
}

double peak_mib() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

} // namespace

int main(int argc, char** argv) {
  std::vector<size_t> counts{1'000, 10'000, 100'000, 1'000'000};
  if (argc > 1)
    counts.clear();
  for (int i = 1; i < argc; ++i)
    counts.push_back(std::stoul(argv[i]));
  fmt::print("{:>10} {:>10} {:>10} {:>12} {:>14} {:>12}\n", "chunks", "devices", "plan s", "simulate s", "µs a chunk",
             "peak MiB");
  for (const size_t count : counts) {
    simulation_options how{.cluster_text = cluster_of(10'000), .profile_file = "/nowhere"};
    how.session = {.policy = placement_policy::round_robin, .fuse = false};
    named_tensors inputs;
    for (size_t i = 0; i < width; ++i)
      inputs["x" + std::to_string(i)] = tensor(dtype::float32, {4});
    const simulation_report r = simulate(chains(count), inputs, how);
    if (r.failed > 0) {
      fmt::print(stderr, "{}\n", r.first_failure);
      return EXIT_FAILURE;
    }
    fmt::print("{:>10} {:>10} {:>10.2f} {:>12.2f} {:>14.2f} {:>12.0f}\n", r.chunks, 10'000, r.plan_s, r.simulate_s,
               r.simulate_s * 1e6 / static_cast<double>(r.chunks), peak_mib());
  }
}
