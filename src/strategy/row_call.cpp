#include "strategy/row_call.hpp"

#include <algorithm>

namespace troupe {
namespace {

using relation = row_state::relation;

/// What a call does along an axis that is not mapped.
std::string_view verb_of(const call_axis& axis) {
  if (axis.kind == axis_kind::windowed)
    return "takes windows along";
  switch (axis.combined) {
    case combination::sum: return "sums over";
    case combination::product: return "multiplies over";
    case combination::min: return "takes the minimum over";
    case combination::max: return "takes the maximum over";
  }
  return "";
}

} // namespace

bool depends_on(const dim& d, const std::string& symbol) {
  std::vector<std::string> names;
  d.collect_symbols(names);
  return std::find(names.begin(), names.end(), symbol) != names.end();
}

const symbolic_shape& row_call::output_dims() const {
  if (!context_.has_output_dims(0))
    fail(errc::unsupported, "has a result of unknown rank");
  return context_.output_dims(0);
}

row_call::rows_on row_call::axis_of_operand(const call_axes& axes, size_t i) const {
  const row_state& s = state(i);
  for (const call_axis& axis : axes.all()) {
    const auto& place = axis.inputs[i];
    if (!place || place->axis != s.axis)
      continue;
    if (axis.kind != axis_kind::mapped)
      fail(errc::unsupported, "{} axis {} of {}, where the rows are", verb_of(axis), s.axis, operand_text(i));
    if (dim span = floor_div(s.unit, place->unit); span * place->unit == s.unit)
      return {&axis, std::move(span)};
  }
  fail(errc::unsupported, "{} axis {} of {}, where the rows are", def().mixes.empty() ? "mixes" : def().mixes, s.axis,
       operand_text(i));
}

row_call::rows_on row_call::axis_of_rows(const call_axes& axes) const {
  std::optional<rows_on> found;
  for (size_t i = 0; i < context_.input_count(); ++i) {
    if (!is(i, relation::rows) || axes.ignores(i))
      continue;
    const rows_on own = axis_of_operand(axes, i);
    if (found && (found->axis != own.axis || !(found->span == own.span)))
      fail(errc::unsupported, "combines each row with all others");
    found = own;
  }
  if (found)
    return *found;
  // No operand has rows, but their number says how long a result is.
  for (const call_axis& axis : axes.all())
    if (axis.kind == axis_kind::mapped && axis.outputs[0] && context_.has_output_dims(0) &&
        counts_rows(context_.output_dims(0)[axis.outputs[0]->axis]))
      return {&axis, 1};
  fail(errc::unsupported, "has no dim of its own for the rows in its result {}", to_string(output_dims()));
}

/// Whether the elements of operand `i` that depend on the number of rows say how long the result is along an axis.
bool row_call::are_sizes(const call_axis& axis, size_t i) const {
  const auto elements = context_.known(i);
  for (size_t element = 0; elements && element < elements->size(); ++element)
    if (depends_on_rows((*elements)[element]) &&
        std::ranges::find(axis.sizes, std::pair(i, element)) == axis.sizes.end())
      return false;
  return elements.has_value();
}

void row_call::require_separate(const call_axes& axes, const rows_on& rows) const {
  for (size_t i = 0; i < context_.input_count(); ++i) {
    if (!context_.has_input(i) || axes.ignores(i))
      continue;
    if (is(i, relation::size) && !are_sizes(*rows.axis, i))
      fail(errc::unsupported, "computes with {}, which depends on the number of rows", operand_text(i));
    if (rows.axis->inputs[i] && !is(i, relation::rows))
      fail(errc::unsupported, "gives each row a part of {}, of dims {}", operand_text(i), to_string(dims(i)));
  }
}

std::vector<std::optional<axis_place>> row_call::results() const {
  const call_axes axes = axes_of(context_);
  const rows_on rows = axis_of_rows(axes);
  require_separate(axes, rows);
  std::vector<std::optional<axis_place>> places = rows.axis->outputs;
  for (auto& place : places)
    if (place)
      place->unit = place->unit * rows.span;
  return places;
}

std::string row_call::operand_text(size_t i) const {
  return fmt::format("operand {} ('{}')", i, graph_.values[context_.call().inputs[i]].name);
}

} // namespace troupe
