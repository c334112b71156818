// Rules of operators that only move elements.
#include "ops/movement.hpp"
#include "rewrite/match.hpp"
#include "strategy/row_rules.hpp"

#include <algorithm>

namespace troupe {
namespace {

row_axes concat_rule(const row_call& c) {
  const size_t rows = c.rows_beside(c.context().axis("axis", 1, c.rank(0)), "joins along");
  for (size_t i = 1; i < c.context().input_count(); ++i)
    c.require_rows(i, rows);
  return {rows};
}

row_axes split_rule(const row_call& c) {
  c.others_are_shared({0});
  return {c.rows_beside(c.context().axis("axis", 0, c.rank(0)), "splits")};
}

/// Bounds of other axes must not depend on the number of rows, even where the dim between them does not show it.
row_axes slice_rule(const row_call& c) {
  c.only_first_has_rows();
  const size_t rows = c.rows_of(0);
  const infer_context& call = c.context();
  const auto bounds = [&](size_t i, const char* name) {
    return call.has_input(i) ? call.require_known(i) : to_symbolic(c.attrs().integers(name));
  };
  const auto starts = bounds(1, "starts"), ends = bounds(2, "ends");
  const auto axes = integers_of(call, 3, "axes"), steps = integers_of(call, 4, "steps");
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t axis = axes ? normalize_axis(axes->at(i), c.rank(0)) : i;
    if (axis != rows && (c.depends_on_rows(starts[i]) || c.depends_on_rows(ends.at(i))))
      fail(errc::unsupported, "cuts axis {} by the number of rows", axis);
    // Forward and of the same size: the whole axis as it is.
    if (axis == rows && ((steps && steps->at(i) != 1) || !c.counts_rows(c.output_dims()[rows])))
      fail(errc::unsupported, "picks rows by their position in the batch");
  }
  return {rows};
}

/// Data with rows and shared indices, or a shared table and indices with rows.
row_axes gather_rule(const row_call& c) {
  const size_t axis = c.context().axis("axis", 0, c.rank(0));
  if (!c.has_rows(0)) {
    c.others_are_shared({1});
    return {axis + c.rows_of(1)};
  }
  c.others_are_shared({0});
  const size_t rows = c.rows_of(0);
  if (rows == axis)
    fail(errc::unsupported, "picks rows by their position in the batch");
  return {rows < axis ? rows : rows + c.rank(1) - 1};
}

row_axes gather_elements_rule(const row_call& c) {
  const size_t axis = c.context().axis("axis", 0, c.rank(0)), rows = c.rows_of(1);
  if (!c.has_rows(0)) {
    c.others_are_shared({1});
    if (rows != axis) // else each index picks from the same vector
      fail(errc::unsupported, "gives each row a part of {}", c.operand_text(0));
    return {rows};
  }
  if (rows == axis)
    fail(errc::unsupported, "picks rows by their position in the batch");
  c.require_rows(0, rows);
  return {rows};
}

/// Returns how many indices a tuple of GatherND and ScatterND has.
size_t tuple_size(const row_call& c) {
  if (c.dims(1).empty() || !c.dims(1).back().is_constant())
    fail(errc::unsupported, "has tuples of unknown size");
  return static_cast<size_t>(c.dims(1).back().constant());
}

/// Within its batch axes data and indices go together; after them one of the two is shared.
row_axes gather_nd_rule(const row_call& c) {
  const auto batches = static_cast<size_t>(std::max<int64_t>(0, c.attrs().integer("batch_dims", 0)));
  const size_t length = tuple_size(c), last = c.rank(1) - 1;
  if (c.has_rows(0) && c.has_rows(1)) {
    const size_t rows = c.rows_of(0);
    if (rows >= batches || rows != c.rows_of(1))
      fail(errc::unsupported, "picks rows by their position in the batch");
    return {rows};
  }
  if (c.has_rows(1)) {
    c.others_are_shared({1});
    if (c.rows_of(1) < batches || c.rows_of(1) == last)
      fail(errc::unsupported, "gives each row a part of {}", c.operand_text(0));
    return {c.rows_of(1)};
  }
  c.others_are_shared({0});
  if (c.rows_of(0) < batches + length)
    fail(errc::unsupported, "picks rows by their position in the batch");
  return {last + c.rows_of(0) - batches - length};
}

row_axes scatter_elements_rule(const row_call& c) {
  const size_t rows = c.rows_beside(c.context().axis("axis", 0, c.rank(0)), "replaces elements along");
  c.require_rows(1, rows);
  c.require_rows(2, rows);
  return {rows};
}

/// Shared indices of axes before the rows: the same places of every row.
row_axes scatter_nd_rule(const row_call& c) {
  c.others_are_shared({0, 2});
  const size_t length = tuple_size(c), last = c.rank(1) - 1;
  if (c.rows_of(0) < length)
    fail(errc::unsupported, "picks rows by their position in the batch");
  c.require_rows(2, last + c.rows_of(0) - length);
  return {c.rows_of(0)};
}

/// Caches with a write position for each row.
row_axes tensor_scatter_rule(const row_call& c) {
  for (const size_t i : {0, 1, 2})
    c.require_rows(i, 0);
  return {0};
}

row_axes transpose_rule(const row_call& c) {
  const auto order = permutation_of(c.context().call(), c.rank(0));
  const auto found = std::find(order.begin(), order.end(), static_cast<int64_t>(c.rows_of(0)));
  return {static_cast<size_t>(found - order.begin())};
}

/// Other dims over the same elements: a row stays together if as much is before it as was, and its dim is still one of
/// its own.
row_axes view_rule(const row_call& c) {
  c.only_first_has_rows();
  const symbolic_shape &from = c.dims(0), &to = c.output_dims();
  const size_t rows = c.rows_of(0);
  const auto found = std::find_if(to.begin(), to.end(), [&](const dim& d) { return c.counts_rows(d); });
  const auto at = static_cast<size_t>(found - to.begin());
  if (found == to.end() || !(volume(std::span(from).first(rows)) == volume(std::span(to).first(at))))
    fail(errc::unsupported, "folds the rows at axis {} of {} into other dims: {}", rows, to_string(from),
         to_string(to));
  return {at};
}

row_axes expand_rule(const row_call& c) {
  c.only_first_has_rows();
  const symbolic_shape& to = c.output_dims();
  const size_t at = c.has_rows(0) ? c.rows_of(0) + to.size() - c.rank(0) : c.counting_axis(to);
  c.require_fit(0, at, to.size());
  return {at};
}

/// The shape's elements alone depend on the number of rows; all elements of the result are equal.
row_axes constant_of_shape_rule(const row_call& c) {
  c.only_first_has_rows();
  if (c.has_rows(0))
    fail(errc::unsupported, "takes its dims from the batch");
  return {c.counting_axis(c.output_dims())};
}

/// A row is repeated within itself, or what all rows share once for each row.
row_axes tile_rule(const row_call& c) {
  c.only_first_has_rows();
  if (c.def().since < 6)
    fail(errc::unsupported, "repeats as opsets before 6 did");
  if (!c.has_rows(0)) {
    const size_t at = c.counting_axis(c.output_dims());
    c.require_fit(0, at, c.rank(0));
    return {at};
  }
  const size_t rows = c.rows_of(0);
  if (!c.context().require_known(1).at(rows).is(1))
    fail(errc::unsupported, "repeats the rows at axis {}", rows);
  return {rows};
}

row_axes pad_rule(const row_call& c) {
  c.others_are_shared({0});
  const size_t rows = c.rows_of(0);
  const auto pads = c.context().has_input(1)
                        ? c.context().require_known(1)
                        : to_symbolic(c.attrs().integers(c.attrs().has("pads") ? "pads" : "paddings"));
  const auto axes = c.context().has_input(3) ? std::optional(c.context().require_constants(3)) : std::nullopt;
  const size_t count = pads.size() / 2;
  for (size_t i = 0; i < count; ++i)
    if ((axes ? normalize_axis(axes->at(i), c.rank(0)) : i) == rows && !(pads[i].is(0) && pads[i + count].is(0)))
      fail(errc::unsupported, "pads axis {}, where the rows are", rows);
  return {rows};
}

row_axes one_hot_rule(const row_call& c) {
  c.others_are_shared({0});
  const size_t rows = c.rows_of(0), axis = c.context().axis("axis", -1, c.rank(0) + 1);
  return {rows < axis ? rows : rows + 1};
}

row_axes trilu_rule(const row_call& c) {
  c.others_are_shared({0});
  if (c.rows_of(0) + 2 >= c.rank(0))
    fail(errc::unsupported, "cuts a triangle over axis {}, where the rows are", c.rows_of(0));
  return {c.rows_of(0)};
}

row_axes reverse_sequence_rule(const row_call& c) {
  const size_t rows = c.rows_beside(c.context().axis("time_axis", 0, c.rank(0)), "reverses");
  if (rows == c.context().axis("batch_axis", 1, c.rank(0)))
    c.require_rows(1, 0);
  else
    c.others_are_shared({0});
  return {rows};
}

constexpr auto movement_entries = std::to_array<row_rule_entry>({
    {"", "Concat", concat_rule},
    {"", "ConstantOfShape", constant_of_shape_rule},
    {"", "Expand", expand_rule},
    {"", "Flatten", view_rule},
    {"", "Gather", gather_rule},
    {"", "GatherElements", gather_elements_rule},
    {"", "GatherND", gather_nd_rule},
    {"", "OneHot", one_hot_rule},
    {"", "Pad", pad_rule},
    {"", "Reshape", view_rule},
    {"", "ReverseSequence", reverse_sequence_rule},
    {"", "Scatter", scatter_elements_rule},
    {"", "ScatterElements", scatter_elements_rule},
    {"", "ScatterND", scatter_nd_rule},
    {"", "Slice", slice_rule},
    {"", "Split", split_rule},
    {"", "Squeeze", view_rule},
    {"", "TensorScatter", tensor_scatter_rule},
    {"", "Tile", tile_rule},
    {"", "Transpose", transpose_rule},
    {"", "Trilu", trilu_rule},
    {"", "Unsqueeze", view_rule},
});

} // namespace

std::span<const row_rule_entry> movement_row_rules() {
  return movement_entries;
}

} // namespace troupe
