#include "ops/scalar_function.hpp"
#include "support/catch.hpp"
#include "support/kernel_case.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr dtype integer_types[] = {dtype::int32, dtype::int64,  dtype::uint32, dtype::uint64,
                                   dtype::int16, dtype::uint16, dtype::int8,   dtype::uint8};

/// All pairs of numbers around a type's limits.
std::pair<tensor, tensor> edge_pairs(dtype type) {
  std::pair<tensor, tensor> pairs;
  visit_integer(type, [&]<class T>(type_tag<T>) {
    using limits = std::numeric_limits<T>;
    const T edges[] = {
        0, 1, 2, 7, static_cast<T>(-1), static_cast<T>(-7), limits::min(), limits::max(), limits::max() / 3};
    std::vector<T> a, b;
    for (T x : edges)
      for (T y : edges) {
        a.push_back(x);
        b.push_back(y);
      }
    const shape dims{static_cast<int64_t>(a.size())};
    pairs = {tensor::of<T>(dims, a), tensor::of<T>(dims, b)};
  });
  return pairs;
}

tensor range(dtype type, shape dims, uint64_t seed, int64_t low, int64_t high) {
  return random_integers(type, std::move(dims), seed, types::unsigned_ints & set_of(type) ? 0 : low, high);
}

} // namespace

TEST_CASE("GPU integer arithmetic wraps and divides by zero", "[vulkan]") {
  for (dtype type : integer_types) {
    const auto [a, b] = edge_pairs(type);
    for (const scalar_function& f : scalar_functions)
      if ((f.types & set_of(type)) && f.since > 0 && f.operands == f.values())
        check_gpu_kernels({.op = std::string(f.name), .inputs = f.operands == 2 ? std::vector{a, b} : std::vector{a}});
    attributes c_remainder;
    c_remainder.set("fmod", int64_t{1});
    check_gpu_kernels({.op = "Mod", .inputs = {a, b}, .attrs = c_remainder});
  }
}

TEST_CASE("GPU bit shifts of a type's width and more give 0", "[vulkan]") {
  for (dtype type : {dtype::uint32, dtype::uint64, dtype::uint16, dtype::uint8})
    for (const char* direction : {"LEFT", "RIGHT"}) {
      attributes attrs;
      attrs.set("direction", std::string(direction));
      check_gpu_kernels({.op = "BitShift",
                         .inputs = {edge_pairs(type).first, random_integers(type, {81}, 2, 0, 70)},
                         .attrs = attrs});
    }
}

TEST_CASE("GPU powers of integers wrap; negative exponents leave 1 and -1", "[vulkan]") {
  for (dtype type : integer_types) {
    check_gpu_kernels({.op = "Pow", .inputs = {edge_pairs(type).first, edge_pairs(type).second}});
    check_gpu_kernels({.op = "Pow", .inputs = {range(type, {3, 70}, 1, -9, 9), range(type, {70}, 2, 0, 7)}});
  }
}

TEST_CASE("GPU integer operands broadcast", "[vulkan]") {
  for (dtype type : {dtype::int32, dtype::int64}) {
    check_gpu_kernels({.op = "Add", .inputs = {range(type, {2, 3, 5, 7}, 1, -9, 9), range(type, {3, 1, 1}, 2, -9, 9)}});
    check_gpu_kernels({.op = "Sub", .inputs = {range(type, {1}, 1, -9, 9), range(type, {4, 1031}, 2, -9, 9)}});
    check_gpu_kernels({.op = "Mul", .inputs = {range(type, {}, 1, -9, 9), range(type, {}, 2, -9, 9)}});
    const tensor a = range(type, {4, 1, 3}, 1, -9, 9), b = range(type, {5, 1}, 2, -9, 9),
                 c = range(type, {3}, 3, -9, 9);
    for (const char* op : {"Max", "Min"}) {
      check_gpu_kernels({.op = op, .inputs = {a, b, c}});
      check_gpu_kernels({.op = op, .inputs = {a}});
    }
    const tensor x = range(type, {2, 33}, 1, -9, 9), low = range(type, {}, 2, -4, -3), high = range(type, {}, 3, 4, 5);
    for (const auto& inputs : {std::vector<tensor>{x}, {x, low}, {x, {}, high}, {x, low, high}, {x, high, low}})
      check_gpu_kernels({.op = "Clip", .inputs = inputs});
  }
}
