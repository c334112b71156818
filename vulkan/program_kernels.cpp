#include "vulkan/program_kernels.hpp"

#include "launch/tiling.hpp"
#include "ops/op.hpp"
#include "plan/plan.hpp"

#include <algorithm>

namespace troupe::vulkan {
namespace {

/// Whether two ways run the same kernels one after the other.
bool same_kernels(const launch_list& a, const launch_list& b) {
  return a.name == b.name && std::ranges::equal(a.launches, b.launches, [](const launch& x, const launch& y) {
           return x.shader == y.shader && x.constants == y.constants;
         });
}

} // namespace

pipeline_key key_of(const launch& l, constant_words constants) {
  const int64_t words = constants == constant_words::none    ? 0
                        : constants == constant_words::fixed ? l.fixed_words
                                                             : std::ssize(l.params) - l.read_words;
  return {
      l.shader, l.constants, static_cast<uint32_t>(l.bindings.size()), {l.params.begin(), l.params.begin() + words}};
}

bool kernel_source::is_ready(const launch_list& way, constant_words constants) const {
  return std::ranges::all_of(way.launches, [&](const launch& l) {
    return compiled.is_ready(key_of(l, constants)) ||
           (constants == constant_words::all && compiled.is_ready(key_of(l, constant_words::fixed)));
  });
}

kernel_selection kernel_source::selection_for(constant_words constants, std::vector<missed_way>& missed) const {
  kernel_selection how = selection;
  if (compiles_later) {
    how.is_ready = [this, constants](const launch_list& way) { return is_ready(way, constants); };
    how.tiles = compiled.first_constants(tiling_constants);
    how.missed = &missed;
  }
  return how;
}

void kernel_source::want(const std::vector<missed_way>& missed, constant_words constants,
                         std::vector<wanted_kernel>& wanted) {
  for (const missed_way& way : missed)
    for (const launch& l : way.list.launches)
      wanted.push_back({key_of(l, constants), way.gain});
}

program_kernels::program_kernels(const bound_plan& bound, device_index self, const dynamic_calls& calls,
                                 std::span<const launch_list> choices, const kernel_source& source)
    : bound_(bound), self_(self), calls_(calls), choices_(choices), source_(source), plan_(*bound.source),
      program_(*plan_.program), constant_blocks_(source.constant_blocks),
      static_selection_(source.selection_for(words_of_static(), missed_)) {}

std::vector<program_kernels::chunk_ways> program_kernels::choose(std::span<const chunk_id> chunks) {
  std::vector<chunk_ways> chosen;
  std::ranges::transform(chunks, std::back_inserter(chosen), [&](chunk_id id) { return ways_of(plan_.chunks[id]); });
  choose_keys(chunks, chosen);
  return chosen;
}

program_kernels::chunk_ways program_kernels::ways_of(const chunk& c) {
  chunk_ways ways(c.nodes.size());
  for (size_t i = 0; i < c.nodes.size(); ++i)
    if (!launches_nothing(plan_, program_.nodes[c.nodes[i]]) && !calls_.is_append(c.nodes[i]))
      ways[i] = way_of(c.nodes[i]);
  return ways;
}

launch_list program_kernels::way_of(node_id id) {
  const uint32_t own = calls_.class_of(id);
  if (is_dynamic(id) && choices_[own].packed.empty())
    return choices_[own];
  kernel_selection how = source_.selection;
  if (is_dynamic(id)) {
    how.is_ready = [&](const launch_list& way) { return same_kernels(way, choices_[own]); };
    for (const launch& l : choices_[own].launches)
      if (l.constants.size() >= tiling_constants)
        how.tiles.emplace_back(l.constants.begin(), l.constants.begin() + tiling_constants);
  } else if (may_vary(id))
    how = static_selection_;
  launch_list chosen = choose_kernel(bound_, program_.nodes[id], plan_.devices[self_], how, calls_.rows_first());
  if (!is_dynamic(id))
    return chosen;
  expects(same_kernels(chosen, choices_[own]), "calls of one class run in one way");
  launch_list shared = choices_[own]; // the weights that are packed are of the first of its class
  shared.packed = std::move(chosen.packed);
  return shared;
}

void program_kernels::choose_keys(std::span<const chunk_id> chunks, std::span<const chunk_ways> chosen) {
  const auto for_each_launch = [&](auto&& use) {
    for (size_t c = 0; c < chunks.size(); ++c)
      for (size_t i = 0; i < chosen[c].size(); ++i)
        for (const launch& l : chosen[c][i].launches)
          use(l, plan_.chunks[chunks[c]].nodes[i], chosen[c][i].time);
  };
  std::map<pipeline_key, double> gains; // that constants should bring
  for_each_launch([&](const launch& l, node_id n, double time) {
    constexpr double usual_time = 3, part = 0.1; // microseconds of a launch, and the part of it that constants save
    gains[best_key(l, n)] += part * (time > 0 ? time : usual_time);
  });
  constant_blocks_ = constant_blocks_ && gains.size() <= most_constant_blocks;
  for_each_launch([&](const launch& l, node_id n, double) {
    const pipeline_key best = best_key(l, n);
    if (waits_for_all_words(n) && !source_.compiled.is_ready(best) && later_.insert(best).second)
      better_.push_back({best, gains.at(best)});
    keys_.push_back(key_in_use(l, n));
  });
  kernel_source::want(missed_, words_of_static(), better_);
}

bool program_kernels::may_vary(node_id id) const {
  const node& n = program_.nodes[id];
  const auto varies = [&](value_id v) {
    if (v == no_value)
      return false;
    const value& is = program_.values[v];
    return !is_constant(is.dims.value()) || (is.known && !is_constant(*is.known));
  };
  return std::ranges::any_of(n.inputs, varies) || std::ranges::any_of(n.outputs, varies);
}

bool program_kernels::waits_for_all_words(node_id n) const {
  return source_.compiles_later && constant_blocks_ && !is_dynamic(n) && may_vary(n);
}

pipeline_key program_kernels::best_key(const launch& l, node_id n) const {
  return key_of(l, constant_blocks_ && is_dynamic(n) ? constant_words::fixed : words_of_static());
}

pipeline_key program_kernels::key_in_use(const launch& l, node_id n) const {
  pipeline_key best = best_key(l, n);
  return waits_for_all_words(n) && later_.contains(best) ? key_of(l, constant_words::fixed) : best;
}

} // namespace troupe::vulkan
