#include "support/catch.hpp"
#include "support/kernel_case.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan_value = std::numeric_limits<float>::quiet_NaN();

const char* const all_kinds[] = {"ReduceSum", "ReduceMean", "ReduceMax",    "ReduceMin",       "ReduceProd",
                                 "ReduceL1",  "ReduceL2",   "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"};

/// A case with the axes as input 1; none if `axes` is empty.
kernel_case reduction(const std::string& op, const tensor& x, const std::vector<int64_t>& axes, bool keep = true) {
  kernel_case c{.op = op, .inputs = {x}, .atol = 2e-4};
  if (!axes.empty())
    c.inputs.push_back(tensor::of<int64_t>({static_cast<int64_t>(axes.size())}, axes));
  c.attrs.set("keepdims", int64_t{keep});
  return c;
}

tensor near_one(const shape& dims) {
  return random_floats(dims, 1, 0.98f, 1.02f);
}

} // namespace

TEST_CASE("GPU reductions", "[vulkan]") {
  check_gpu_kernels(reduction("ReduceLogSumExp", near_one({3, 40, 5}), {1}));
  check_gpu_kernels(reduction("ReduceMean", near_one({2, 3, 4, 5, 6}), {0, 2, 4}, false), true);
  check_gpu_kernels(reduction("ReduceSum", near_one({2, 30000}), {1})); // in parts
  check_gpu_kernels(reduction("ReduceMax", random_integers(dtype::int32, {4, 9}, 1, -99, 99), {1}));
}

TEST_CASE("GPU reductions of any axes and length", "[vulkan][slow]") {
  for (const char* op : all_kinds)
    for (bool half : {false, true}) {
      check_gpu_kernels(reduction(op, near_one({2, 300, 7}), {}), half);
      check_gpu_kernels(reduction(op, near_one({3, 40, 5}), {1}), half);
      check_gpu_kernels(reduction(op, near_one({3000, 40}), {0}), half); // side by side, in parts
      check_gpu_kernels(reduction(op, near_one({2, 9001}), {-1}, false), half);
    }
  for (const char* op : {"ReduceSum", "ReduceMax", "ReduceLogSumExp"}) {
    check_gpu_kernels(reduction(op, near_one({2, 40000}), {1}), true);
    check_gpu_kernels(reduction(op, near_one({2, 0, 3}), {1}));
    check_gpu_kernels(reduction(op, near_one({0, 4}), {1}));
    check_gpu_kernels(reduction(op, near_one({}), {}));
    kernel_case none = reduction(op, near_one({3, 4}), {});
    none.attrs.set("noop_with_empty_axes", int64_t{1});
    check_gpu_kernels(none);
    kernel_case old{.op = op, .inputs = {near_one({3, 4, 5})}, .opset = 11};
    old.attrs.set("axes", std::vector<int64_t>{0, 2});
    check_gpu_kernels(old);
  }
}

TEST_CASE("GPU reductions of integers", "[vulkan][slow]") {
  for (const char* op : {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare"})
    for (dtype type : {dtype::int32, dtype::int64, dtype::uint32, dtype::uint64, dtype::int16, dtype::uint16,
                       dtype::int8, dtype::uint8}) {
      const bool is_unsigned = types::unsigned_ints & set_of(type), is_short = type == dtype::int8;
      const int64_t low = is_unsigned ? 0 : is_short ? -120 : -200, high = is_short ? 120 : 250;
      check_gpu_kernels(reduction(op, random_integers(type, {4, 70, 3}, 1, low, high), {1}));
      check_gpu_kernels(reduction(op, random_integers(type, {4, 300}, 1, low, high), {0, 1}));
    }
  for (const char* op : {"ReduceMax", "ReduceMin"})
    check_gpu_kernels(reduction(op, random_integers(dtype::boolean, {6, 3}, 1, 0, 2), {1}));
}

TEST_CASE("GPU reductions keep NaN and infinities", "[vulkan]") {
  const float v[] = {1, 2, nan_value, infinity, 0, -1, -infinity, -infinity, -infinity, -infinity, 5, infinity};
  for (const char* op : {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceLogSumExp"})
    check_gpu_kernels(reduction(op, tensor::of<float>({4, 3}, v), {1}));
}

TEST_CASE("GPU ArgMax and ArgMin", "[vulkan]") {
  const float v[] = {1, 3, 3, 2, nan_value, 0, nan_value, 1, -infinity, -0.f, 0.f, -0.f, 2, 2, 2, 2};
  for (const char* op : {"ArgMax", "ArgMin"})
    for (int64_t last : {0, 1}) {
      kernel_case c{.op = op, .inputs = {tensor::of<float>({4, 4}, v)}};
      c.attrs.set("select_last_index", last);
      c.attrs.set("axis", int64_t{1});
      check_gpu_kernels(c);
      c.inputs = {random_integers(dtype::int32, {2, 500, 3}, 1, -20, 20)};
      c.attrs.set("keepdims", int64_t{0});
      check_gpu_kernels(c);
    }
  kernel_case c{.op = "ArgMax", .inputs = {random_floats({3, 2000}, 1)}};
  c.attrs.set("axis", int64_t{-1});
  check_gpu_kernels(c, true);
}

TEST_CASE("GPU ArgMax, ArgMin and TopK of all types", "[vulkan]") {
  for (dtype type : {dtype::float64, dtype::int64, dtype::uint32, dtype::uint64, dtype::int16, dtype::uint16,
                     dtype::int8, dtype::uint8}) {
    const bool is_signed = (types::unsigned_ints & set_of(type)) == 0;
    tensor x = type == dtype::float64 ? to_type(random_floats({2, 70, 3}, 1, -20, 20), type)
                                      : random_integers(type, {2, 70, 3}, 1, is_signed ? -20 : 0, 20);
    if (bits_of(type) == 64 && type != dtype::float64) // differences in the high word
      visit_integer(type, [&]<class T>(type_tag<T>) {
        for (int64_t i = 0; i < x.size(); i += 3)
          x.mutable_data<T>()[i] = static_cast<T>(static_cast<uint64_t>(x.data<T>()[i]) << 40);
      });
    for (const char* op : {"ArgMax", "ArgMin"}) {
      kernel_case c{.op = op, .inputs = {x}};
      c.attrs.set("axis", int64_t{1});
      check_gpu_kernels(c);
    }
    for (int64_t largest : {0, 1}) {
      kernel_case c{.op = "TopK", .inputs = {x, tensor::of<int64_t>({1}, std::vector<int64_t>{9})}, .outputs = 2};
      c.attrs.set("axis", int64_t{-2});
      c.attrs.set("largest", largest);
      check_gpu_kernels(c);
    }
  }
}

TEST_CASE("GPU cumulative products, and sums of all types", "[vulkan]") {
  const tensor axis = tensor::of<int64_t>({}, std::vector<int64_t>{1});
  for (int64_t exclusive : {0, 1})
    for (const char* op : {"CumSum", "CumProd"}) {
      kernel_case c{.op = op, .inputs = {random_floats({2, 37, 3}, 1, 0.9f, 1.1f), axis}, .opset = 26, .constants = 2};
      c.attrs.set("exclusive", exclusive);
      c.attrs.set("reverse", exclusive);
      check_gpu_kernels(c);
      for (dtype type : {dtype::float64, dtype::int32, dtype::int64, dtype::uint32, dtype::uint64, dtype::int16,
                         dtype::uint16, dtype::int8, dtype::uint8}) {
        c.inputs[0] = type == dtype::float64 ? to_type(random_floats({2, 300}, 1, 0.9f, 1.1f), type)
                                             : random_integers(type, {2, 300}, 1, 0, 9);
        c.rtol = type == dtype::float64 ? 1e-13 : 1e-4;
        check_gpu_kernels(c);
      }
    }
}

TEST_CASE("GPU cumulative sums", "[vulkan]") {
  for (int64_t axis : {0, 1, -1})
    for (int64_t exclusive : {0, 1}) {
      kernel_case c{.op = "CumSum",
                    .inputs = {random_floats({3, 37, 5}, 1), tensor::of<int64_t>({}, std::vector<int64_t>{axis})},
                    .constants = 2};
      c.attrs.set("exclusive", exclusive);
      c.attrs.set("reverse", int64_t{axis != 1});
      check_gpu_kernels(c, axis == 0);
      c.inputs[0] = random_integers(axis == 0 ? dtype::int64 : dtype::int32, {2, 3000}, 1, -9, 9);
      check_gpu_kernels(c);
    }
}

TEST_CASE("GPU TopK", "[vulkan]") {
  const float v[] = {1, 3, 3, 2, nan_value, 0, nan_value, 1, -infinity, -0.f, 0.f, -0.f, 2, 2, 2, 2};
  const auto top = [](tensor x, int64_t k, int64_t axis, int64_t largest) {
    kernel_case c{
        .op = "TopK", .inputs = {std::move(x), tensor::of<int64_t>({1}, std::vector<int64_t>{k})}, .outputs = 2};
    c.attrs.set("axis", axis);
    c.attrs.set("largest", largest);
    return c;
  };
  for (int64_t largest : {0, 1}) {
    check_gpu_kernels(top(tensor::of<float>({4, 4}, v), 3, 1, largest));
    check_gpu_kernels(top(random_integers(dtype::int32, {2, 70, 3}, 1, -20, 20), 9, 1, largest));
  }
  check_gpu_kernels(top(random_floats({2, 1500}, 1), 40, -1, 1), true);
  check_gpu_kernels(top(random_floats({5000}, 1), 5, 0, 1));
  check_gpu_kernels(top(random_integers(dtype::int32, {2, 30000, 2}, 1, -500, 500), 70, 1, 0)); // pieces, with equals
}

TEST_CASE("GPU norms without parameters", "[vulkan]") {
  kernel_case lrn{.op = "LRN", .inputs = {random_floats({2, 7, 5, 3}, 1)}};
  lrn.attrs.set("size", int64_t{4});
  lrn.attrs.set("alpha", 0.3f);
  check_gpu_kernels(lrn, true);
  for (int64_t p : {1, 2}) {
    tensor x = random_floats({3, 20, 5}, 1);
    std::fill_n(x.mutable_data<float>(), 100, 0.f);
    kernel_case lp{.op = "LpNormalization", .inputs = {x}};
    lp.attrs.set("p", p);
    lp.attrs.set("axis", int64_t{p == 1 ? 1 : -1});
    check_gpu_kernels(lp);
  }
  check_gpu_kernels({.op = "MeanVarianceNormalization", .inputs = {random_floats({3, 4, 5, 6}, 1, 1, 3)}});
}
