#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("MaxPool states indices in rows or columns", "[ops]") {
  const tensor x = floats({1, 1, 2, 3}, {1, 5, 2, 7, 3, 4});
  const auto run = [&](int64_t order) {
    return run_op("MaxPool", 12, attrs_of({{"kernel_shape", int_list{2, 2}}, {"storage_order", order}}), {x}, 2);
  };
  CHECK(elements(run(0)[0]) == std::vector<double>{7, 5});
  CHECK(elements(run(0)[1]) == std::vector<double>{3, 1});
  CHECK(elements(run(1)[1]) == std::vector<double>{1, 2});
}

TEST_CASE("MaxPool ignores padding, even for negative numbers", "[ops]") {
  const auto attrs = attrs_of({{"kernel_shape", int_list{3}}, {"pads", int_list{1, 1}}});
  CHECK(elements(run_op("MaxPool", 12, attrs, {floats({1, 1, 3}, {-5, -4, -9})})[0]) ==
        std::vector<double>{-4, -4, -4});
  const tensor bytes = tensor::of<int8_t>({1, 1, 3}, std::vector<int8_t>{-5, -128, -9});
  CHECK(elements(run_op("MaxPool", 12, attrs, {bytes})[0]) == std::vector<double>{-5, -5, -9});
}

TEST_CASE("AveragePool counts padding only if asked, and never places after it", "[ops]") {
  const auto run = [](int64_t include) {
    const auto attrs = attrs_of({{"kernel_shape", int_list{2}},
                                 {"strides", int_list{2}},
                                 {"pads", int_list{1, 0}},
                                 {"ceil_mode", int64_t{1}},
                                 {"count_include_pad", include}});
    return elements(run_op("AveragePool", 19, attrs, {floats({1, 1, 4}, {2, 4, 6, 8})})[0]);
  };
  CHECK(run(0) == std::vector<double>{2, 5, 8});
  CHECK(run(1) == std::vector<double>{1, 5, 8}); // the last window reaches one element beyond the input
}

TEST_CASE("A pool that rounds up begins a window that exceeds its input", "[ops]") {
  const auto run = [](const std::string& op, const tensor& x, int64_t kernel, int64_t stride, int64_t pad) {
    const auto attrs = attrs_of({{"kernel_shape", int_list{kernel}},
                                 {"strides", int_list{stride}},
                                 {"pads", int_list{pad, pad}},
                                 {"ceil_mode", int64_t{1}},
                                 {"count_include_pad", int64_t{1}}});
    return elements(run_op(op, 19, attrs, {x})[0]);
  };
  const tensor one = floats({1, 1, 1}, {1}), two = floats({1, 1, 2}, {1, 2});
  CHECK(run("MaxPool", two, 3, 2, 0) == std::vector<double>{2});
  CHECK(run("AveragePool", two, 3, 2, 0) == std::vector<double>{1.5});
  CHECK(run("AveragePool", one, 3, 3, 0) == std::vector<double>{1});
  CHECK(run("AveragePool", two, 5, 2, 1) == std::vector<double>{0.75});
  CHECK_THROWS_AS(run("MaxPool", one, 3, 2, 0), error);
}

TEST_CASE("AveragePool counts more taps than 64 bits hold", "[ops]") {
  constexpr int64_t k = 2'147'483'000;
  const auto attrs = attrs_of({{"kernel_shape", int_list{k, k, k}},
                               {"strides", int_list{k, k, k}},
                               {"pads", int_list{9, 9, 9, k, k, k}},
                               {"count_include_pad", int64_t{1}}});
  tensor x(dtype::float64, {1, 1, 1, 1, 1});
  *x.mutable_data<double>() = 1e28;
  CHECK(elements(run_op("AveragePool", 19, attrs, {x})[0])[0] == Approx(1.009742872747854));
}

TEST_CASE("Global pools reduce each plane", "[ops]") {
  const tensor x = floats({1, 2, 2, 2}, {1, 2, 3, 4, 3, 4, 0, 0});
  CHECK(elements(run_op("GlobalAveragePool", 1, {}, {x})[0]) == std::vector<double>{2.5, 1.75});
  CHECK(elements(run_op("GlobalMaxPool", 1, {}, {x})[0]) == std::vector<double>{4, 4});
  CHECK(elements(run_op("GlobalLpPool", 2, {}, {x})[0])[1] == 5);
  CHECK(elements(run_op("LpPool", 18, attrs_of({{"kernel_shape", int_list{2, 2}}}), {x})[0])[1] == 5);
}

TEST_CASE("Huge paddings and kernels cost nothing", "[ops]") {
  const int64_t huge = int64_t{1} << 30;
  const auto attrs = attrs_of({{"kernel_shape", int_list{huge}}, {"pads", int_list{huge, 0}}});
  CHECK(elements(run_op("MaxPool", 12, attrs, {floats({1, 1, 3}, {1, 2, 3})})[0]).back() == 3);
  CHECK_THROWS_AS(run_op("MaxPool", 12, attrs_of({{"kernel_shape", int_list{huge}}}), {ramp({1, 1, 3})}), error);
  CHECK_THROWS_AS(run_op("MaxPool", 12, attrs_of({{"kernel_shape", int_list{2, 2}}}), {ramp({1, 1, 3})}), error);
  CHECK_THROWS_AS(run_op("MaxPool", 12, {}, {ramp({1, 1, 3})}), error);
}
