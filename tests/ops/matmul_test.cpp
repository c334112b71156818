#include "ops/gemm.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("Blocked products equal plain sums at every edge of the blocking", "[ops]") {
  for (int64_t m : {1, 3, 4, 5, 70})
    for (int64_t n : {1, 31, 32, 97})
      for (int64_t k : {0, 1, 513}) {
        std::vector<double> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n));
        for (size_t i = 0; i < a.size(); ++i)
          a[i] = static_cast<double>(i % 17) - 8;
        for (size_t i = 0; i < b.size(); ++i)
          b[i] = static_cast<double>(i % 13) - 6;
        std::vector<double> c(static_cast<size_t>(m * n), 1.0), expected = c;
        gemm(m, n, k, a.data(), k, b.data(), n, c.data(), n);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j)
            for (int64_t p = 0; p < k; ++p)
              expected[static_cast<size_t>(i * n + j)] +=
                  a[static_cast<size_t>(i * k + p)] * b[static_cast<size_t>(p * n + j)];
        CAPTURE(m, n, k);
        CHECK(c == expected);
      }
}

TEST_CASE("MatMul follows NumPy's rules for vectors and batches", "[ops]") {
  const tensor row = floats({2}, {1, 2}), matrix = floats({2, 2}, {1, 2, 3, 4});
  CHECK(run_op("MatMul", 13, {}, {row, row})[0].dims().empty());
  CHECK(elements(run_op("MatMul", 13, {}, {row, row})[0]) == std::vector<double>{5});
  CHECK(elements(run_op("MatMul", 13, {}, {row, matrix})[0]) == std::vector<double>{7, 10});
  CHECK(elements(run_op("MatMul", 13, {}, {matrix, row})[0]) == std::vector<double>{5, 11});
  const tensor y = run_op("MatMul", 13, {}, {ramp({2, 1, 2, 2}), ramp({3, 2, 1})})[0];
  CHECK(y.dims() == shape{2, 3, 2, 1});
  CHECK(elements(y) == std::vector<double>{1, 3, 3, 13, 5, 23, 5, 7, 23, 33, 41, 59});
  CHECK_THROWS_AS(run_op("MatMul", 13, {}, {ramp({2, 3}), ramp({2, 3})}), error);
  CHECK_THROWS_AS(run_op("MatMul", 13, {}, {ramp({}), ramp({2, 3})}), error);
}

TEST_CASE("MatMul multiplies integers exactly", "[ops]") {
  const tensor a = tensor::of<int32_t>({1, 2}, std::vector<int32_t>{-70000, 3});
  const tensor b = tensor::of<int32_t>({2, 1}, std::vector<int32_t>{20000, -5});
  CHECK(elements(run_op("MatMul", 9, {}, {a, b})[0]) == std::vector<double>{-1400000015});
}

TEST_CASE("Gemm transposes, scales and broadcasts its addend", "[ops]") {
  const tensor a = ramp({3, 2}), b = ramp({4, 3}), column = floats({2, 1}, {100, 200});
  const auto attrs = attrs_of({{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 2.f}, {"beta", 0.5f}});
  const tensor y = run_op("Gemm", 13, attrs, {a, b, column})[0];
  // op(A) = [[0, 2, 4], [1, 3, 5]], op(B) columns are the rows of B: 0 1 2, 3 4 5, …
  CHECK(elements(y) == std::vector<double>{70, 106, 142, 178, 126, 180, 234, 288});
  CHECK_THROWS_AS(run_op("Gemm", 13, {}, {ramp({2, 3}), ramp({3, 4}), ramp({3})}), error);
  CHECK_THROWS_AS(run_op("Gemm", 13, {}, {ramp({2, 3}), ramp({3, 4}), ramp({1, 2, 4})}), error);
}
