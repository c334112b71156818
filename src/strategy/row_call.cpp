#include "strategy/row_call.hpp"

#include <algorithm>

namespace troupe {

bool depends_on(const dim& d, const std::string& symbol) {
  std::vector<std::string> names;
  d.collect_symbols(names);
  return std::find(names.begin(), names.end(), symbol) != names.end();
}

const symbolic_shape& row_call::output_dims() const {
  const value_id v = context_.call().outputs.at(0);
  if (v == no_value || !graph_.values[v].dims)
    fail(errc::unsupported, "has a result of unknown rank");
  return *graph_.values[v].dims;
}

size_t row_call::rows_of(size_t i) const {
  if (!has_rows(i))
    fail(errc::unsupported, "combines rows with {}, which has none", operand_text(i));
  return states_[context_.call().inputs[i]].axis;
}

size_t row_call::counting_axis(std::span<const dim> dims) const {
  const auto found = std::find_if(dims.begin(), dims.end(), [&](const dim& d) { return counts_rows(d); });
  if (found == dims.end())
    fail(errc::unsupported, "has no dim of its own for the rows in its result {}", to_string(dims));
  return static_cast<size_t>(found - dims.begin());
}

void row_call::require_shared(size_t i) const {
  if (context_.has_input(i) && !is(i, row_state::relation::shared))
    fail(errc::unsupported, "takes {} from the batch, which must be the same for all rows", operand_text(i));
}

void row_call::others_are_shared(std::initializer_list<size_t> with_rows) const {
  for (size_t i = 0; i < context_.input_count(); ++i)
    if (std::find(with_rows.begin(), with_rows.end(), i) == with_rows.end())
      require_shared(i);
}

void row_call::only_first_has_rows() const {
  for (size_t i = 1; i < context_.input_count(); ++i)
    if (has_rows(i))
      require_shared(i);
}

void row_call::require_rows(size_t i, size_t axis) const {
  if (context_.has_input(i) && rows_of(i) != axis)
    fail(errc::unsupported, "has the rows of {} at axis {} instead of {}", operand_text(i), rows_of(i), axis);
}

void row_call::require_single(size_t i) const {
  if (!context_.has_input(i))
    return;
  const symbolic_shape& d = dims(i);
  if (!is(i, row_state::relation::shared) || !std::all_of(d.begin(), d.end(), [](const dim& x) { return x.is(1); }))
    fail(errc::unsupported, "takes {} of dims {}, where all rows must share one element", operand_text(i),
         to_string(d));
}

void row_call::require_fit(size_t i, size_t axis, size_t rank) const {
  if (!context_.has_input(i))
    return;
  if (is(i, row_state::relation::size))
    fail(errc::unsupported, "computes with {}, which depends on the number of rows", operand_text(i));
  const symbolic_shape& d = dims(i);
  const size_t missing = rank - std::min(rank, d.size());
  if (has_rows(i) ? rows_of(i) + missing != axis : axis >= missing && !d[axis - missing].is(1))
    fail(errc::unsupported, "broadcasts {} of dims {} so that rows meet others than their own", operand_text(i),
         to_string(d));
}

size_t row_call::broadcast_axis(size_t rank) const {
  size_t first = 0;
  while (first < context_.input_count() && !has_rows(first))
    ++first;
  const size_t axis = rows_of(first) + rank - this->rank(first);
  for (size_t i = 0; i < context_.input_count(); ++i)
    require_fit(i, axis, rank);
  return axis;
}

size_t row_call::rows_beside(size_t axis, const char* what) const {
  const size_t rows = rows_of(0);
  if (rows == axis)
    fail(errc::unsupported, "{} axis {}, where the rows are", what, axis);
  return rows;
}

std::string row_call::operand_text(size_t i) const {
  if (!context_.has_input(i))
    return fmt::format("operand {}", i);
  return fmt::format("operand {} ('{}')", i, graph_.values[context_.call().inputs[i]].name);
}

} // namespace troupe
