// TopK: the k largest (or smallest) elements along an axis, with their indices; among equals the lower index comes
// first. NaN counts as larger than every number.
#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/movement.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

constexpr int64_t top_k_grain = 4 * 1024;

void infer_top(infer_context& c, const dim& k) {
  symbolic_shape out = c.dims(0);
  const size_t axis = c.axis("axis", -1, out.size());
  if (k.is_constant() && (k.constant() < 0 || (out[axis].is_constant() && k.constant() > out[axis].constant())))
    fail(errc::invalid_model, "TopK takes {} elements of a dim of {}", k.constant(), out[axis].to_string());
  out[axis] = k;
  c.set_output(0, c.type(0), out);
  c.set_output(1, dtype::int64, std::move(out));
}

void infer_top_k_1(infer_context& c) {
  infer_top(c, c.attrs().integer("k"));
}

void infer_top_k(infer_context& c) {
  const auto k = c.require_known(1);
  if (k.size() != 1)
    fail(errc::invalid_model, "TopK has {} values of k", k.size());
  infer_top(c, k[0]);
}

/// Whether a comes before b if the largest come first.
template <class T>
bool larger(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return a > b;
  else {
    const auto x = static_cast<double>(a), y = static_cast<double>(b);
    return x > y || (x != x && y == y);
  }
}

/// The k of a call: either output may be absent.
int64_t wanted(const kernel_context& c, size_t axis) {
  return c.output(c.has_output(0) ? 0 : 1).dims[axis];
}

template <class T>
void top_k_lines(kernel_context& c, size_t axis, int64_t begin, int64_t end) {
  const auto dims = c.input(0).dims;
  const int64_t n = dims[axis], k = wanted(c, axis), inner = product(dims, axis + 1, dims.size());
  const bool largest = c.attrs().integer("largest", 1) != 0;
  std::vector<T> line(static_cast<size_t>(n));
  std::vector<int64_t> order(static_cast<size_t>(n));
  const auto before = [&](int64_t a, int64_t b) {
    const T x = line[static_cast<size_t>(a)], y = line[static_cast<size_t>(b)];
    if (larger(x, y) || larger(y, x))
      return larger(x, y) == largest;
    return a < b;
  };
  for (int64_t i = begin; i < end; ++i) {
    const T* x = c.input(0).as<T>() + i / inner * n * inner + i % inner;
    for (int64_t j = 0; j < n; ++j)
      line[static_cast<size_t>(j)] = x[j * inner];
    std::iota(order.begin(), order.end(), int64_t{0});
    if (k < n)
      std::nth_element(order.begin(), order.begin() + k, order.end(), before);
    std::sort(order.begin(), order.begin() + k, before);
    const int64_t to = i / inner * k * inner + i % inner;
    for (int64_t j = 0; j < k; ++j) {
      if (c.has_output(0))
        c.output(0).as<T>()[to + j * inner] = line[static_cast<size_t>(order[static_cast<size_t>(j)])];
      if (c.has_output(1))
        c.output(1).as<int64_t>()[to + j * inner] = order[static_cast<size_t>(j)];
    }
  }
}

void top_k_kernel(kernel_context& c) {
  const const_view& in = c.input(0);
  const size_t axis = normalize_axis(c.attrs().integer("axis", -1), in.dims.size());
  if (!c.has_output(0) && !c.has_output(1))
    return;
  if (wanted(c, axis) > in.dims[axis])
    fail(errc::invalid_input, "TopK takes {} elements of a dim of {}", wanted(c, axis), in.dims[axis]);
  const int64_t lines = product(in.dims, 0, axis) * product(in.dims, axis + 1, in.dims.size());
  visit_numeric(in.type, [&]<class T>(type_tag<T>) {
    parallel_for(lines, std::max<int64_t>(1, top_k_grain / std::max<int64_t>(in.dims[axis], 1)),
                 [&](int64_t begin, int64_t end) { top_k_lines<T>(c, axis, begin, end); });
  });
}

constexpr auto top_k_rows = std::to_array<op_def>({
    op_row("TopK", 1, infer_top_k_1, top_k_kernel,
           {.max_outputs = 2, .types = types::numeric, .axes = axes::beside_axis<-1>, .mixes = "sorts"}),
    op_row("TopK", 10, infer_top_k, top_k_kernel,
           {.inputs = {2, 2},
            .max_outputs = 2,
            .types = types::numeric,
            .host_inputs = 0b10,
            .axes = axes::beside_axis<-1>,
            .mixes = "sorts"}),
});

} // namespace

extern constinit const op_table onnx_top_k_ops = top_k_rows;

} // namespace troupe
