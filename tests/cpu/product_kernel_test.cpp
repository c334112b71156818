#include "cpu/kernel_check.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("products of few rows agree with the reference", "[cpu]") {
  const bool constant = GENERATE(false, true);
  for (int64_t m : {1, 2, 3, 4})
    for (const auto& [k, n] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {7, 33}, {300, 257}, {515, 1001}, {64, 5000}}) {
      INFO(m << " x " << k << " x " << n);
      CHECK(kernel_check("", "MatMul").input({m, k}).input({k, n}, constant).worst("gemv") < 1);
      attributes transposed;
      transposed.set("transB", int64_t{1});
      CHECK(kernel_check("", "Gemm", transposed).input({m, k}).input({n, k}, constant).input({n}).worst("gemv") < 1);
    }
}

TEST_CASE("oneDNN products agree with the reference", "[cpu]") {
  const bool constant = GENERATE(false, true);
  CHECK(kernel_check("", "MatMul").input({5, 33}).input({33, 17}, constant).worst("dnnl_matmul") < 1);
  CHECK(kernel_check("", "MatMul").input({2, 3, 9, 33}).input({33, 65}, constant).worst("dnnl_matmul") < 1);
  CHECK(kernel_check("", "MatMul").input({2, 3, 9, 33}).input({2, 3, 33, 8}, constant).worst("dnnl_matmul") < 1);
  CHECK(kernel_check("", "MatMul").input({2, 1, 9, 33}).input({3, 33, 8}, constant).worst("dnnl_matmul") < 1);
  CHECK(kernel_check("", "MatMul").input({4, 33}).input({3, 33, 8}, constant).worst("dnnl_matmul") < 1);
}

TEST_CASE("oneDNN Gemm agrees with the reference", "[cpu]") {
  for (int64_t ta : {0, 1})
    for (int64_t tb : {0, 1})
      for (float alpha : {1.f, 0.5f}) {
        attributes a;
        a.set("transA", ta);
        a.set("transB", tb);
        a.set("alpha", alpha);
        const shape left = ta ? shape{19, 6} : shape{6, 19}, right = tb ? shape{35, 19} : shape{19, 35};
        INFO(ta << tb << alpha);
        CHECK(kernel_check("", "Gemm", a).input(left).input(right, true).worst("dnnl_matmul") < 1);
        CHECK(kernel_check("", "Gemm", a).input(left).input(right, true).input({35}).worst("dnnl_matmul") < 1);
        CHECK(kernel_check("", "Gemm", a).input(left).input(right).input({6, 35}).worst("dnnl_matmul") < 1);
      }
}
