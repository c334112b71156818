#include "strategy/row_positions.hpp"

#include <algorithm>

namespace troupe {
namespace {

using relation = row_state::relation;

bool is_view(std::string_view name) {
  return name == "Reshape" || name == "Flatten" || name == "Squeeze" || name == "Unsqueeze";
}

/// Returns the only element of operand `i` if the host knows it.
std::optional<dim> known_element(const infer_context& c, size_t i) {
  const auto elements = c.known(i);
  return elements && elements->size() == 1 ? std::optional(elements->front()) : std::nullopt;
}

/// Returns the end of a Range from 0 in steps of 1.
std::optional<dim> counted(const infer_context& c) {
  const auto start = known_element(c, 0), step = known_element(c, 2);
  return start && step && start->is(0) && step->is(1) ? known_element(c, 1) : std::nullopt;
}

/// Returns a bound that the numbers, which are at least 0, are below.
std::optional<dim> bound_of(const std::vector<dim>& numbers) {
  int64_t bound = 1;
  for (const dim& d : numbers) {
    if (!d.is_constant() || d.constant() < 0 || d.constant() == INT64_MAX)
      return std::nullopt;
    bound = std::max(bound, d.constant() + 1);
  }
  return bound;
}

/// Returns the same for the elements of a value that is a Range under any dims.
std::optional<dim> bound_of(const graph& g, const std::vector<node_id>& producer, value_id v) {
  while (producer[v] >= 0) {
    const node& n = g.nodes[producer[v]];
    if (n.def->domain.empty() && n.def->name == "Range")
      return counted(infer_context::of(g, n));
    if (!n.def->domain.empty() || !is_view(n.def->name))
      return std::nullopt;
    v = n.inputs[0];
  }
  return std::nullopt;
}

/// Row numbers under other dims.
std::optional<row_state> viewed(const row_call& c) {
  row_state s = c.state(0);
  const call_axes axes = axes_of(c.context());
  for (const call_axis& axis : axes.all())
    if (s.is == relation::positions && axis.inputs[0]->axis == s.axis && axis.inputs[0]->unit.is(1) &&
        axis.outputs[0]->unit.is(1)) {
      s.axis = axis.outputs[0]->axis;
      return s;
    }
  return std::nullopt;
}

/// Row numbers times a number, or plus a Range that all rows share.
std::optional<row_state> computed(const row_call& c, const graph& g, const std::vector<node_id>& producer) {
  const size_t numbers = c.state(0).is == relation::positions ? 0 : 1, other = 1 - numbers;
  row_state s = c.state(numbers);
  if (s.is != relation::positions || c.state(other).is != relation::shared || !s.bound.is(1))
    return std::nullopt;
  const size_t rank = c.output_dims().size(), missing = rank - std::min(rank, c.rank(other));
  s.axis += rank - c.rank(numbers);
  if (s.axis >= missing && !c.dims(other)[s.axis - missing].is(1))
    return std::nullopt;
  if (c.def().name == "Mul") {
    const auto factor = known_element(c.context(), other);
    s.step = s.step * factor.value_or(0);
    return factor ? std::optional(s) : std::nullopt;
  }
  const auto elements = c.context().known(other);
  const auto bound = elements ? bound_of(*elements) : bound_of(g, producer, c.context().call().inputs[other]);
  s.bound = bound.value_or(0);
  return bound ? std::optional(s) : std::nullopt;
}

/// A row's own elements by its number.
std::optional<row_state> picked(const row_call& c) {
  const row_state &data = c.state(0), &index = c.state(1);
  const bool own = index.step == data.unit && (is_nonnegative(data.unit - index.bound) || index.bound.is(1));
  const size_t axis = c.context().axis("axis", 0, c.rank(0));
  if (data.is != relation::rows || index.is != relation::positions || axis != data.axis || !own)
    return std::nullopt;
  return row_state{relation::rows, axis + index.axis};
}

} // namespace

std::optional<row_state> indexed_rows(const row_call& c, const graph& g, const std::vector<node_id>& producer) {
  const std::string_view name = c.def().name;
  if (!c.def().domain.empty())
    return std::nullopt;
  if (name == "Range") {
    const auto end = counted(c.context());
    return end && c.counts_rows(*end) ? std::optional(row_state{relation::positions, 0}) : std::nullopt;
  }
  if (is_view(name))
    return viewed(c);
  if (name == "Mul" || name == "Add")
    return computed(c, g, producer);
  return name == "Gather" ? picked(c) : std::nullopt;
}

} // namespace troupe
