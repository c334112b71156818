// Slice: y = x[start:end:step, …] on some axes: negative bounds count from the end, bounds beyond the dim are clamped,
// a negative step walks backwards. Bounds may be symbolic; their sign is then decided when they are bound.
#include "graph/element_symbols.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/movement.hpp"
#include "ops/onnx/nonempty_dims.hpp"
#include "ops/operand_copy.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Numbers at least this large mean "the end", whatever the dim.
constexpr int64_t unbounded = INT32_MAX;

/// One sliced axis as the model states it.
struct range {
  size_t axis;
  dim start, end;
  int64_t step = 1;
};

/// Whether x ≥ 0 in every run in which no dim of an input is empty, so that x[:, 1:] and x[:, -1:] keep simple dims.
/// That it is taken to be is noted: a run in which it is not needs another program.
bool is_nonnegative_unless_empty(const dim& x) {
  if (is_nonnegative(x))
    return true;
  if (x.is_constant() || x.depends_on_data() || !is_positive_unless_empty(x + 1))
    return false;
  nonempty_dims::note(x);
  return true;
}

dim least(const dim& a, const dim& b) {
  return is_nonnegative_unless_empty(b - a) ? a : is_nonnegative_unless_empty(a - b) ? b : min(a, b);
}

dim greatest(const dim& a, const dim& b) {
  return is_nonnegative_unless_empty(a - b) ? a : is_nonnegative_unless_empty(b - a) ? b : max(a, b);
}

/// `bound` counted from the front and clamped to [low, high]; `d` is the axis' dim.
dim clamp_bound(const dim& bound, const dim& d, const dim& low, const dim& high) {
  if (bound.is_constant()) {
    const int64_t b = bound.constant();
    if (b >= unbounded && (!d.is_constant() || b >= d.constant()))
      return high;
    if (b <= -unbounded && (!d.is_constant() || b < -d.constant()))
      return low;
    return greatest(least(b < 0 ? bound + d : bound, high), low);
  }
  if (is_nonnegative(bound))
    return greatest(least(bound, high), low);
  if (is_nonnegative(dim(0) - bound - 1))
    return greatest(least(bound + d, high), low);
  const dim sign = max(min(bound, 0), -1); // -1 if negative, else 0
  return greatest(least(bound - d * sign, high), low);
}

/// First index and number of elements of a range over a dim.
std::pair<dim, dim> resolve_range(const range& r, const dim& d) {
  if (r.step > 0) {
    const dim start = clamp_bound(r.start, d, 0, d), end = clamp_bound(r.end, d, 0, d);
    return {start, greatest(ceil_div(end - start, r.step), 0)};
  }
  // A start before the first element is the first one, where NumPy's slice is empty; of an empty dim there is none.
  const dim start = least(clamp_bound(r.start, d, 0, d - 1), d - 1), end = clamp_bound(r.end, d, -1, d - 1);
  return {start, greatest(ceil_div(start - end, -r.step), 0)};
}

void check_counts(size_t starts, size_t ends, size_t axes, size_t steps) {
  if (starts != ends || starts != axes || starts != steps)
    fail(errc::invalid_model, "Slice has {} starts, {} ends, {} axes, {} steps", starts, ends, axes, steps);
}

std::vector<range> make_ranges(std::span<const dim> starts, std::span<const dim> ends,
                               std::optional<std::vector<int64_t>> axes, std::optional<std::vector<int64_t>> steps,
                               size_t rank) {
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < starts.size(); ++i)
      axes->push_back(static_cast<int64_t>(i));
  }
  if (!steps)
    steps.emplace(starts.size(), 1);
  check_counts(starts.size(), ends.size(), axes->size(), steps->size());
  const auto normal = normalize_axes(*axes, rank);
  std::vector<range> ranges;
  for (size_t i = 0; i < starts.size(); ++i) {
    // The smallest integer has no opposite: any step that large takes one element.
    const int64_t step = std::max((*steps)[i], -INT64_MAX);
    if (step == 0)
      fail(errc::invalid_model, "Slice has a step of 0");
    ranges.push_back({normal[i], starts[i], ends[i], step});
  }
  return ranges;
}

void infer_ranges(infer_context& c, const std::vector<range>& ranges) {
  symbolic_shape out = c.dims(0);
  for (const range& r : ranges)
    out[r.axis] = resolve_range(r, c.dims(0)[r.axis]).second;
  set_moved(c, {std::move(out)});
}

void infer_slice_1(infer_context& c) {
  const auto starts = c.attrs().integers("starts"), ends = c.attrs().integers("ends");
  infer_ranges(c,
               make_ranges(to_symbolic(starts), to_symbolic(ends), integers_of(c, 3, "axes"), std::nullopt, c.rank(0)));
}

void infer_slice(infer_context& c) {
  infer_ranges(c, make_ranges(c.require_known(1), c.require_known(2), integers_of(c, 3, "axes"),
                              integers_of(c, 4, "steps"), c.rank(0)));
}

} // namespace

std::vector<operand_copy> slice_copies(kernel_context& c) {
  const const_view& in = c.input(0);
  const auto starts = integers_of(c, 1, "starts"), ends = integers_of(c, 2, "ends");
  if (!starts || !ends)
    fail(errc::invalid_model, "Slice has no starts or ends");
  const auto ranges = make_ranges(to_symbolic(*starts), to_symbolic(*ends), integers_of(c, 3, "axes"),
                                  c.has_input(4) ? std::optional(to_int64(c.input(4))) : std::nullopt, in.dims.size());
  const shape from = strides_of(in.dims), to = strides_of(c.output(0).dims);
  operand_copy copy;
  std::vector<copy_axis>& axes = copy.axes;
  for (size_t i = 0; i < in.dims.size(); ++i)
    axes.push_back({in.dims[i], from[i], to[i]});
  for (const range& r : ranges) {
    const auto [start, count] = resolve_range(r, in.dims[r.axis]);
    axes[r.axis].size = count.constant();
    // A step beyond the dim takes one element: its size is irrelevant, and must not overflow.
    axes[r.axis].from = count.constant() > 1 ? r.step * from[r.axis] : 0;
    copy.from += start.constant() * from[r.axis];
  }
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].size != c.output(0).dims[i])
      fail(errc::invalid_input, "Slice of {} does not give {}", to_string(in.dims), to_string(c.output(0).dims));
  if (c.output(0).size() == 0)
    return {};
  return {std::move(copy)};
}

namespace {

void slice_kernel(kernel_context& c) {
  run_copies(c, slice_copies(c));
}

/// Elements in steps of 1, as many as there were, are all of them.
std::optional<size_t> repeats_forward(const infer_context& c) {
  return !c.has_input(4) || c.is_filled(4, 1) ? std::optional<size_t>(0) : std::nullopt;
}

/// A dim that is taken whole, in steps of 1, stays as it is; its end may be the length of it.
void slice_axes(call_axes& a) {
  const infer_context& c = a.call();
  const auto axes = integers_of(c, 3, "axes"), steps = integers_of(c, 4, "steps");
  const size_t count = c.has_input(1) ? c.require_known(1).size() : c.attrs().integers("starts").size();
  for (size_t axis = 0; axis < c.rank(0); ++axis) {
    size_t range = 0;
    while (range < count && (axes ? normalize_axis(axes->at(range), c.rank(0)) : range) != axis)
      ++range;
    const bool whole = a.result_dims()[axis] == c.dims(0)[axis];
    if (range == count)
      a.map({{0, axis}}, axis);
    else if (whole && (!steps || steps->at(range) == 1))
      a.map({{0, axis}}, axis).sizes = {{2, range}};
  }
}

constexpr auto slice_rows = std::to_array<op_def>({
    op_row("Slice", 1, infer_slice_1, slice_kernel,
           {.types = movable_types,
            .repeats = repeats_forward,
            .axes = slice_axes,
            .mixes = "picks elements by their position along"}),
    op_row("Slice", 10, infer_slice, slice_kernel,
           {.inputs = {3, 5},
            .types = movable_types,
            .host_inputs = 0b11110,
            .repeats = repeats_forward,
            .axes = slice_axes,
            .mixes = "picks elements by their position along"}),
});

} // namespace

extern constinit const op_table onnx_slice_ops = slice_rows;

} // namespace troupe
