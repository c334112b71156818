#include "sim/bounds.hpp"

#include "cost/cost_model.hpp"
#include "graph/bodies.hpp"
#include "plan/place/placement_problem.hpp"

#include <cmath>

namespace troupe::sim {
namespace {

/// Devices of equal speed and abilities, of which there are `count`.
struct device_class {
  const device_info* like = nullptr;
  device_index index = 0;
  double count = 0;
};

std::vector<device_class> classes_of(std::span<const device_info> devices) {
  const std::vector<size_t> processors = first_of_processors(devices);
  std::vector<device_class> all;
  for (device_index d = 0; d < devices.size(); ++d) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const device_class& c) {
      return c.like->kind == devices[d].kind && c.like->profile == devices[d].profile &&
             c.like->gpu == devices[d].gpu && c.like->fallback == devices[d].fallback;
    });
    const double adds = processors[d] == d ? 1 : 0; // those of one processor are one
    if (same != all.end())
      same->count += adds;
    else
      all.push_back({&devices[d], d, std::max(adds, 0.0)});
  }
  std::erase_if(all, [](const device_class& c) { return c.count == 0; });
  return all;
}

using seconds_table = std::vector<std::vector<double>>; // by node, by class; infinite: it cannot run there

double longest_path(const graph& g, const std::vector<node_id>& producer, const seconds_table& table) {
  std::vector<double> end(table.size(), 0);
  double longest = 0;
  for (node_id n = 0; n < static_cast<node_id>(table.size()); ++n) {
    double begin = 0;
    for (value_id v : g.nodes[n].inputs)
      if (v != no_value && producer[v] >= 0)
        begin = std::max(begin, end[producer[v]]);
    end[n] = begin + *std::min_element(table[n].begin(), table[n].end());
    longest = std::max(longest, end[n]);
  }
  return longest;
}

double area(const seconds_table& table, std::span<const device_class> classes) {
  std::vector<double> weight(classes.size()); // y_d of one device of the class
  double devices = 0;
  for (const device_class& c : classes)
    devices += c.count;
  std::fill(weight.begin(), weight.end(), 1 / devices);
  double best = 0;
  constexpr int rounds = 200;
  for (int round = 0; round < rounds; ++round) {
    double sum = 0;
    std::vector<double> load(classes.size(), 0); // seconds that each class is given
    for (const std::vector<double>& node : table) {
      size_t least = 0;
      for (size_t c = 1; c < classes.size(); ++c)
        if (weight[c] * node[c] < weight[least] * node[least])
          least = c;
      sum += weight[least] * node[least];
      load[least] += node[least];
    }
    best = std::max(best, sum);
    double most = 0, all = 0;
    for (size_t c = 0; c < classes.size(); ++c)
      most = std::max(most, load[c] / classes[c].count);
    if (most <= 0)
      return best;
    const double step = 1 / (1 + 0.1 * round);
    for (size_t c = 0; c < classes.size(); ++c) {
      weight[c] *= std::exp(step * (load[c] / classes[c].count / most - 0.5));
      all += weight[c] * classes[c].count;
    }
    for (double& w : weight)
      w /= all;
  }
  return best;
}

} // namespace

schedule_bounds bounds_of(const plan& p, std::span<const shape> dims) {
  const std::vector<device_info> devices = real_devices(p);
  const std::vector<device_class> classes = classes_of(devices);
  const graph& g = *p.program;
  if (g.nodes.size() * classes.size() > max_bound_pairs)
    return {};
  plan_options options = p.options;
  options.pins.clear();
  placement_problem problem(g, devices, options);
  seconds_table table(g.nodes.size());
  for (node_id n = 0; n < static_cast<node_id>(g.nodes.size()); ++n)
    for (const device_class& c : classes) {
      const bool is_free = has_body(g.nodes[n]) || p.inserted[n] || launches_nothing(p, g.nodes[n]);
      const bool can = is_free || problem.allows(n, c.index) || p.devices[p.placement[n]].name == c.like->name;
      table[n].push_back(is_free ? 0 : can ? predict_node(p, dims, n, c.like->profile) : HUGE_VAL);
    }
  return {longest_path(g, p.producer, table), area(table, classes)};
}

} // namespace troupe::sim
