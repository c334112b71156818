#include "schedules/task_graph.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

/// Returns one task's seconds on a device: uniform around its mean.
double varied(double mean, double heterogeneity, seeded_random& random) {
  return mean * random.between(1 - heterogeneity / 2, 1 + heterogeneity / 2);
}

void check_range(const char* what, double is, double least, double most) {
  if (!(is >= least && is <= most))
    fail(errc::invalid_argument, "{} is {}; it may be {} to {}", what, is, least, most);
}

/// Returns the first task of each layer, and their number after the last: heights and widths are uniform around their
/// means.
std::vector<uint32_t> layers_of(const layered_options& options, seeded_random& random) {
  const double root = std::sqrt(static_cast<double>(options.tasks));
  const auto around = [&](double mean) { return std::max(1.0, std::round(random.between(0.5, 1.5) * mean)); };
  const auto height = static_cast<uint32_t>(std::min(around(root / options.shape), static_cast<double>(options.tasks)));
  // Uniform widths, scaled so that the layers hold all tasks.
  std::vector<double> widths;
  double sum = 0;
  for (uint32_t layer = 0; layer < height; ++layer)
    sum += widths.emplace_back(around(root * options.shape));
  std::vector<uint32_t> begin{0};
  double done = 0;
  for (double width : widths) {
    done += width;
    const auto end = static_cast<uint32_t>(std::llround(done / sum * options.tasks));
    if (end > begin.back())
      begin.push_back(end);
  }
  return begin; // ends with all tasks: the last layer's `done` is `sum`
}

/// Calls `add` for each edge of a random graph in layers: ascending by layer, then by `to`, then by `from`.
template <class Add>
void draw_edges(const layered_options& options, seeded_random& random, Add&& add) {
  check_range("the number of tasks", options.tasks, 1, 1e7);
  check_range("the shape", options.shape, 1e-3, 1e3);
  check_range("the out degree", options.out_degree, 1, 1e6);
  const std::vector<uint32_t> begin = layers_of(options, random);
  for (size_t layer = 0; layer + 2 < begin.size(); ++layer) {
    const uint32_t first = begin[layer], next = begin[layer + 1], after = begin[layer + 2];
    std::vector<bool> is_read(after - next, false);
    std::vector<std::pair<task_id, task_id>> pairs;
    for (task_id from = first; from < next; ++from)
      for (uint32_t left = 1 + random.below(options.out_degree); left > 0; --left) {
        const task_id to = next + random.below(after - next);
        pairs.emplace_back(to, from);
        is_read[to - next] = true;
      }
    for (task_id to = next; to < after; ++to)
      if (!is_read[to - next])
        pairs.emplace_back(to, first + random.below(next - first));
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    for (const auto& [to, from] : pairs)
      add(from, to);
  }
}

} // namespace

cost_matrix random_layers(const layered_options& options, uint32_t devices, uint64_t seed) {
  check_range("the CCR", options.ccr, 0, 1e9);
  check_range("the heterogeneity", options.heterogeneity, 0, 2);
  check_range("the mean time", options.mean_seconds, 0, 1e9);
  check_range("the number of devices", devices, 1, 1e5);
  seeded_random random(seed);
  cost_matrix costs{.tasks = options.tasks, .devices = devices};
  costs.seconds.reserve(static_cast<size_t>(options.tasks) * devices);
  for (task_id n = 0; n < options.tasks; ++n) {
    const double mean = random.between(0, 2 * options.mean_seconds);
    for (uint32_t d = 0; d < devices; ++d)
      costs.seconds.push_back(varied(mean, options.heterogeneity, random));
  }
  draw_edges(options, random, [&](task_id from, task_id to) {
    costs.edges.push_back({from, to, random.between(0, 2 * options.ccr * options.mean_seconds)});
  });
  return costs;
}

task_graph layers(const layered_options& options, double work, double bytes, uint64_t seed) {
  seeded_random random(seed);
  task_graph made{.name = "layers", .tasks = {}, .edges = {}};
  for (task_id n = 0; n < options.tasks; ++n)
    made.tasks.push_back({"task", random.between(0, 2 * work)});
  draw_edges(options, random, [&](task_id from, task_id to) {
    made.edges.push_back({from, to, random.between(0, 2 * bytes)});
  });
  return made;
}

cost_matrix costs_on(const task_graph& graph, const task_platform& platform, uint64_t seed) {
  check_range("the number of devices", platform.devices, 1, 1e5);
  check_range("the speed", platform.flops_per_s, 1e-9, 1e30);
  check_range("the bandwidth", platform.bytes_per_s, 1e-9, 1e30);
  check_range("the latency", platform.latency_s, 0, 1e9);
  check_range("the heterogeneity", platform.heterogeneity, 0, 2);
  seeded_random random(seed);
  cost_matrix costs{.tasks = static_cast<uint32_t>(graph.tasks.size()), .devices = platform.devices};
  for (const graph_task& task : graph.tasks)
    for (uint32_t d = 0; d < platform.devices; ++d)
      costs.seconds.push_back(varied(task.work / platform.flops_per_s, platform.heterogeneity, random));
  for (const graph_edge& e : graph.edges)
    costs.edges.push_back({e.from, e.to, platform.latency_s + e.bytes / platform.bytes_per_s});
  return costs;
}

} // namespace troupe
