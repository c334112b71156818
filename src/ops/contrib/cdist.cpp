// CDist of com.microsoft: the distance of each row of A [m, k] from each row of B [n, k]; `metric` is euclidean or
// sqeuclidean, its square.
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <cmath>

namespace troupe {
namespace {

bool takes_root(const attributes& attrs) {
  return word_of(attrs, "metric", "sqeuclidean", {"euclidean", "sqeuclidean"}) == "euclidean";
}

void infer_cdist(infer_context& c) {
  takes_root(c.attrs());
  if (c.rank(0) != 2 || c.rank(1) != 2 || c.type(0) != c.type(1))
    fail(errc::invalid_model, "operands of shapes {} and {} are not two lists of points of one type",
         to_string(c.dims(0)), to_string(c.dims(1)));
  require_same(c.dims(0)[1], c.dims(1)[1], "the points' dimensions");
  c.set_output(0, c.type(0), {c.dims(0)[0], c.dims(1)[0]});
}

void cdist(kernel_context& c) {
  const auto a_dims = c.input(0).dims, b_dims = c.input(1).dims;
  const int64_t m = a_dims[0], n = b_dims[0], k = a_dims[1];
  if (b_dims[1] != k)
    fail(errc::invalid_input, "points of {} and {} dimensions", k, b_dims[1]);
  const bool root = takes_root(c.attrs());
  visit_compute(c.input(0).type, [&]<class C>(type_tag<C>) {
    const read_as<C> a(c.input(0)), b(c.input(1));
    write_as<C> y(c.output(0));
    parallel_for(m, std::max<int64_t>(1, 16 * 1024 / (n * k + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < n; ++j) {
          C sum = 0;
          for (int64_t d = 0; d < k; ++d) {
            const C apart = a[i * k + d] - b[j * k + d];
            sum += apart * apart;
          }
          y[i * n + j] = root ? std::sqrt(sum) : sum;
        }
    });
    y.commit();
  });
}

op_cost cdist_cost(const attributes&, const call_shapes& call) {
  return {3 * static_cast<double>(volume(call.outputs[0])) * static_cast<double>(call.inputs[0].back()),
          operand_bytes(call)};
}

/// Each row of A and each of B.
void cdist_axes(call_axes& a) {
  a.map({{0, 0}}, 0);
  a.map({{1, 0}}, 1);
}

constexpr auto cdist_rows = std::to_array<op_def>({
    op_row("CDist", 1, infer_cdist, cdist,
           {.domain = microsoft,
            .inputs = {2, 2},
            .types = types::floats,
            .needs_float32 = true,
            .cost = cdist_cost,
            .axes = cdist_axes,
            .mixes = "sums over"}),
});

} // namespace

extern constinit const op_table contrib_cdist_ops = cdist_rows;

} // namespace troupe
