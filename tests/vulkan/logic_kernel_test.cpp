#include "support/catch.hpp"
#include "support/kernel_case.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

tensor few_floats(shape dims, uint64_t seed) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float values[] = {0.f, -0.f, 1.f, -1.f, 2.5f, infinity, -infinity, nan};
  tensor t = random_floats(std::move(dims), seed, 0, 7.999f);
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = values[static_cast<int>(t.data<float>()[i])];
  return t;
}

/// Booleans that a file may hold: any byte.
tensor loose_booleans(shape dims, uint64_t seed) {
  tensor t = random_integers(dtype::boolean, std::move(dims), seed, 0, 2);
  for (int64_t i = 0; i < t.size(); i += 3)
    t.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(t.data<uint8_t>()[i] * 2);
  return t;
}

} // namespace

TEST_CASE("GPU comparisons", "[vulkan]") {
  for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}) {
    check_gpu_kernels({.op = op, .inputs = {few_floats({3, 400}, 1), few_floats({3, 400}, 2)}});
    check_gpu_kernels({.op = op, .inputs = {few_floats({3, 1, 4, 5}, 1), few_floats({7, 1, 5}, 2)}}, true);
    for (dtype type : {dtype::int32, dtype::int64, dtype::uint32, dtype::uint64, dtype::int16, dtype::uint16,
                       dtype::int8, dtype::uint8})
      check_gpu_kernels(
          {.op = op, .inputs = {random_integers(type, {2, 70}, 1, 0, 5), random_integers(type, {1}, 2, 2, 4)}});
  }
}

TEST_CASE("GPU boolean operators take any byte but 0 for true", "[vulkan]") {
  for (const char* op : {"And", "Or", "Xor", "Equal"}) {
    check_gpu_kernels({.op = op, .inputs = {loose_booleans({3, 400}, 1), loose_booleans({3, 400}, 2)}});
    check_gpu_kernels({.op = op, .inputs = {loose_booleans({3, 1, 5}, 1), loose_booleans({4, 1}, 2)}});
  }
  check_gpu_kernels({.op = "Not", .inputs = {loose_booleans({1029}, 1)}});
}

TEST_CASE("GPU IsNaN and IsInf", "[vulkan]") {
  for (bool half : {false, true}) {
    check_gpu_kernels({.op = "IsNaN", .inputs = {few_floats({5, 70}, 1)}}, half);
    for (int64_t positive : {0, 1})
      for (int64_t negative : {0, 1}) {
        attributes attrs;
        attrs.set("detect_positive", positive);
        attrs.set("detect_negative", negative);
        check_gpu_kernels({.op = "IsInf", .inputs = {few_floats({5, 70}, 1)}, .attrs = attrs}, half);
      }
  }
}

TEST_CASE("GPU If selects elements of every width by broadcast conditions", "[vulkan]") {
  for (dtype type : {dtype::uint8, dtype::int16, dtype::int32, dtype::int64})
    for (const auto& [c, a, b] : {std::tuple<shape, shape, shape>{{2, 3, 5}, {2, 3, 5}, {2, 3, 5}},
                                  {{2, 1, 5}, {3, 1}, {1}},
                                  {{1}, {2, 513}, {513}},
                                  {{4, 1, 6, 1}, {}, {1, 3, 1, 5}}})
      check_gpu_kernels(
          {.op = "Where",
           .inputs = {loose_booleans(c, 1), random_integers(type, a, 2, 0, 99), random_integers(type, b, 3, 0, 99)}});
}
