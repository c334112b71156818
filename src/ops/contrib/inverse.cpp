// Inverse of com.microsoft: the inverse of each matrix of [batch…, n, n], by Gauss and Jordan's elimination with
// partial pivoting, in double. A matrix that has none gives infinities and NaN.
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

void infer_inverse(infer_context& c) {
  const symbolic_shape dims = c.dims(0);
  require_rank(dims.size(), 2, "the input");
  require_same(dims[dims.size() - 2], dims.back(), "rows and columns");
  c.set_output(0, c.type(0), dims);
}

/// Overwrites `a`; `b`, which is the identity before, is the inverse after.
void invert(double* a, double* b, int64_t n) {
  const auto row = [n](double* m, int64_t i) { return m + i * n; };
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k]))
        pivot = i;
    if (pivot != k)
      for (double* m : {a, b})
        std::swap_ranges(row(m, k), row(m, k + 1), row(m, pivot));
    const double diagonal = a[k * n + k];
    for (double* m : {a, b})
      for (int64_t j = 0; j < n; ++j)
        row(m, k)[j] /= diagonal;
    for (int64_t i = 0; i < n; ++i) {
      const double factor = i == k ? 0 : a[i * n + k];
      if (factor != 0)
        for (double* m : {a, b})
          for (int64_t j = 0; j < n; ++j)
            row(m, i)[j] -= factor * row(m, k)[j];
    }
  }
}

void inverse(kernel_context& c) {
  const const_view& x = c.input(0);
  const int64_t n = x.dims.back(), area = n * n;
  if (x.dims[x.dims.size() - 2] != n)
    fail(errc::invalid_input, "matrices of shape {} have no inverse", to_string(x.dims));
  visit_float(x.type, [&]<class T>(type_tag<T>) {
    parallel_for(area == 0 ? 0 : x.size() / area, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, area * n)),
                 [&](int64_t begin, int64_t end) {
                   std::vector<double> a(static_cast<size_t>(area)), b(a.size());
                   for (int64_t i = begin; i < end; ++i) {
                     std::copy_n(x.as<T>() + i * area, area, a.begin());
                     std::fill(b.begin(), b.end(), 0);
                     for (int64_t k = 0; k < n; ++k)
                       b[static_cast<size_t>(k * (n + 1))] = 1;
                     invert(a.data(), b.data(), n);
                     std::transform(b.begin(), b.end(), c.output(0).as<T>() + i * area,
                                    [](double v) { return static_cast<T>(v); });
                   }
                 });
  });
}

/// 2 · n³ operations a matrix.
op_cost inverse_cost(const attributes&, const call_shapes& call) {
  const double n = static_cast<double>(call.inputs[0].back());
  return {2 * n * static_cast<double>(volume(call.inputs[0])), operand_bytes(call)};
}

constexpr auto inverse_rows = std::to_array<op_def>({
    op_row("Inverse", 1, infer_inverse, inverse,
           {.domain = microsoft,
            .types = types::floats,
            .needs_float32 = true,
            .cost = inverse_cost,
            .axes = axes::before_last<2>,
            .mixes = "inverts matrices over"}),
});

} // namespace

extern constinit const op_table contrib_inverse_ops = inverse_rows;

} // namespace troupe
