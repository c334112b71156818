// Det: the determinant of each matrix of [batch…, n, n], by elimination with partial pivoting, in double. Of no rows it
// is 1.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

/// Returns n and throws unless the last two dims are equal.
dim matrix_size(std::span<const dim> x) {
  require_rank(x.size(), 2, "the input");
  require_same(x[x.size() - 2], x.back(), "rows and columns");
  return x.back();
}

void infer_det(infer_context& c) {
  symbolic_shape dims = c.dims(0);
  matrix_size(dims);
  dims.resize(dims.size() - 2);
  c.set_output(0, c.type(0), std::move(dims));
}

/// Overwrites the matrix.
double determinant(double* a, int64_t n) {
  double result = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      const double best = std::abs(a[pivot * n + k]);
      if (best == best && !(std::abs(a[i * n + k]) <= best)) // a NaN is taken, and stays
        pivot = i;
    }
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      result = -result;
    }
    const double diagonal = a[k * n + k];
    result *= diagonal;
    if (diagonal == 0)
      return 0;
    for (int64_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / diagonal;
      for (int64_t j = k + 1; j < n; ++j)
        a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return result;
}

void det(kernel_context& c) {
  const const_view& x = c.input(0);
  const int64_t n = matrix_size(to_symbolic(x.dims)).constant(), area = n * n;
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, area));
  visit_float(x.type, [&]<class T>(type_tag<T>) {
    parallel_for(c.output(0).size(), grain, [&](int64_t begin, int64_t end) {
      std::vector<double> matrix(static_cast<size_t>(area));
      for (int64_t b = begin; b < end; ++b) {
        std::copy_n(x.as<T>() + b * area, area, matrix.begin());
        c.output(0).as<T>()[b] = static_cast<T>(determinant(matrix.data(), n));
      }
    });
  });
}

/// Two thirds of n³ operations a matrix.
op_cost det_cost(const attributes&, const call_shapes& call) {
  const double n = static_cast<double>(call.inputs[0].back());
  return {2. / 3 * n * static_cast<double>(volume(call.inputs[0])), operand_bytes(call)};
}

constexpr auto det_rows = std::to_array<op_def>({
    op_row("Det", 11, infer_det, det,
           {.types = types::floats,
            .needs_float32 = true,
            .cost = det_cost,
            .axes = axes::before_last<2>,
            .mixes = "takes determinants over"}),
});

} // namespace

extern constinit const op_table onnx_det_ops = det_rows;

} // namespace troupe
