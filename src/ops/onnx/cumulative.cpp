// CumSum and CumProd: y[i] = x[0] ∘ … ∘ x[i] along an axis; `exclusive` leaves x[i] out, `reverse` starts at the end.
// Floats accumulate in double, integers wrap around.
#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/movement.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr int64_t cumulative_grain = 16 * 1024;

/// Runs along the axis for every outer index; neighbours of the axis run side by side.
template <class T, class F>
void accumulate(kernel_context& c, size_t axis, int64_t neutral, F combine) {
  using A = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  const auto dims = c.input(0).dims;
  const int64_t n = dims[axis], inner = product(dims, axis + 1, dims.size()), outer = product(dims, 0, axis);
  const bool exclusive = c.attrs().integer("exclusive", 0) != 0, reverse = c.attrs().integer("reverse", 0) != 0;
  const int64_t part = std::max<int64_t>(1, cumulative_grain / std::max<int64_t>(n * inner, 1));
  parallel_for(outer, part, [&](int64_t begin, int64_t end) {
    std::vector<A> sums(static_cast<size_t>(inner));
    for (int64_t o = begin; o < end; ++o) {
      std::fill(sums.begin(), sums.end(), static_cast<A>(neutral));
      for (int64_t step = 0; step < n; ++step) {
        const int64_t line = (o * n + (reverse ? n - 1 - step : step)) * inner;
        const T* x = c.input(0).as<T>() + line;
        T* y = c.output(0).as<T>() + line;
        for (int64_t i = 0; i < inner; ++i) {
          A& sum = sums[static_cast<size_t>(i)];
          const A next = combine(sum, static_cast<A>(x[i]));
          y[i] = static_cast<T>(exclusive ? sum : next);
          sum = next;
        }
      }
    }
  });
}

template <class F>
void run(kernel_context& c, int64_t neutral, F combine) {
  const auto axis = to_int64(c.input(1));
  if (axis.size() != 1)
    fail(errc::invalid_input, "the axis has {} elements instead of one", axis.size());
  const size_t along = normalize_axis(axis[0], c.input(0).dims.size());
  visit_numeric(c.input(0).type, [&]<class T>(type_tag<T>) { accumulate<T>(c, along, neutral, combine); });
}

void cum_sum(kernel_context& c) {
  run(c, 0, [](auto a, auto b) { return a + b; });
}

void cum_prod(kernel_context& c) {
  run(c, 1, [](auto a, auto b) { return a * b; });
}

void cumulative_axes(call_axes& a) {
  const size_t axis = normalize_axis(a.call().require_constants(1).at(0), a.call().rank(0));
  a.keep(axis, axis + 1);
}

constexpr op_def cumulative_row(std::string_view name, int64_t since, void (*reference)(kernel_context&)) {
  return op_row(name, since, infer_same, reference,
                {.inputs = {2, 2},
                 .types = types::numeric,
                 .needs_float32 = true,
                 .axes = cumulative_axes,
                 .mixes = "accumulates along"});
}

constexpr auto cumulative_rows = std::to_array<op_def>({
    cumulative_row("CumSum", 11, cum_sum),
    cumulative_row("CumProd", 26, cum_prod),
});

} // namespace

extern constinit const op_table onnx_cumulative_ops = cumulative_rows;

} // namespace troupe
