// ArgMax and ArgMin: the index of the largest or smallest element along an axis; the first such index, or with
// select_last_index the last. NaN counts as the extreme, as in NumPy.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/operand.hpp"

namespace troupe {
namespace {

void infer_arg(infer_context& c) {
  symbolic_shape dims = c.dims(0);
  const size_t axis = c.axis("axis", 0, dims.size());
  if (dims[axis].is(0))
    fail(errc::invalid_model, "axis {} is empty", axis);
  if (c.attrs().integer("keepdims", 1) != 0)
    dims[axis] = 1;
  else
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  c.set_output(0, dtype::int64, std::move(dims));
}

/// Returns the wanted index of `size` elements that are `stride` apart.
template <bool Largest, class T>
int64_t extreme(const T* x, int64_t size, int64_t stride, bool last) {
  int64_t best = 0;
  for (int64_t i = 1; i < size; ++i) {
    const T value = x[i * stride], top = x[best * stride];
    const bool is_nan = value != value, top_nan = top != top;
    const bool better = is_nan ? !top_nan : !top_nan && (Largest ? value > top : value < top);
    if (better || (last && (value == top || (is_nan && top_nan))))
      best = i;
  }
  return best;
}

template <bool Largest>
void arg_reduce(kernel_context& c) {
  const const_view& x = c.input(0);
  const size_t axis = normalize_axis(c.attrs().integer("axis", 0), x.dims.size());
  const int64_t size = x.dims[axis], inner = volume(x.dims.subspan(axis + 1));
  if (size == 0)
    fail(errc::invalid_input, "axis {} is empty", axis);
  const bool last = c.attrs().integer("select_last_index", 0) != 0;
  auto* out = c.output(0).as<int64_t>();
  visit_numeric(x.type, [&]<class T>(type_tag<T>) {
    const T* in = x.as<T>();
    parallel_for(c.output(0).size(), std::max<int64_t>(1, elementwise_grain / size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        out[i] = extreme<Largest>(in + i / inner * size * inner + i % inner, size, inner, last);
    });
  });
}

void arg_axes(call_axes& a) {
  const size_t rank = a.call().rank(0), reduced = a.call().axis("axis", 0, rank);
  const bool keeps = a.call().attrs().integer("keepdims", 1) != 0;
  for (size_t axis = 0; axis < rank; ++axis)
    if (axis != reduced)
      a.map({{0, axis}}, axis - (axis > reduced && !keeps ? 1 : 0));
}

constexpr auto arg_reduce_rows = std::to_array<op_def>({
    op_row("ArgMax", 1, infer_arg, arg_reduce<true>,
           {.types = types::numeric, .cost = cost_per_input<1>, .axes = arg_axes, .mixes = "reduces"}),
    op_row("ArgMin", 1, infer_arg, arg_reduce<false>,
           {.types = types::numeric, .cost = cost_per_input<1>, .axes = arg_axes, .mixes = "reduces"}),
});

} // namespace

extern constinit const op_table onnx_arg_reduce_ops = arg_reduce_rows;

} // namespace troupe
