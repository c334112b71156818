// Every kernel that divides, takes a root or rounds, on values beside ties: bit by bit the reference's
// (check_gpu_bits). A million values on a GPU (scripts/gpu-check), a tenth of that on a GPU that is software.
#include "ops/composed/fused_elementwise.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/kernel_case.hpp"
#include "support/tie_values.hpp"
#include "vulkan/device_choice.hpp"

#include <cmath>
#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

size_t sweep_size() {
  static const size_t size = vulkan::is_hardware(gpus()->gpus().at(0).snapshot) ? 1'000'000 : 100'000;
  return size;
}

int64_t sweep_count() {
  return static_cast<int64_t>(sweep_size());
}

tensor row(const std::vector<float>& values) {
  return tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

tensor scalar(float value) {
  return tensor::of<float>({}, std::span<const float>(&value, 1));
}

std::vector<tensor> both(const float_pairs& pairs) {
  return {row(pairs.a), row(pairs.b)};
}

/// In float16; numbers that are too large for it become infinite on either side.
std::vector<tensor> halves(const float_pairs& pairs) {
  return {to_half(row(pairs.a)), to_half(row(pairs.b))};
}

/// Whole numbers as floats.
tensor whole_floats(shape dims, uint64_t seed, int64_t low, int64_t high) {
  const tensor integers = random_integers(dtype::int32, std::move(dims), seed, low, high);
  tensor t(dtype::float32, integers.dims());
  std::copy_n(integers.data<int32_t>(), t.size(), t.mutable_data<float>());
  return t;
}

attributes integers(std::initializer_list<std::pair<const char*, std::vector<int64_t>>> values) {
  attributes attrs;
  for (const auto& [name, value] : values)
    attrs.set(name, value);
  return attrs;
}

attributes integer(const char* name, int64_t value) {
  attributes attrs;
  attrs.set(name, value);
  return attrs;
}

void check_chain(const std::string& name, std::vector<elementwise_step> steps, std::vector<tensor> inputs) {
  check_gpu_bits(name, {.op = "Elementwise",
                        .inputs = std::move(inputs),
                        .attrs = to_attributes({std::move(steps), {}}),
                        .domain = "troupe"});
}

} // namespace

TEST_CASE("GPU quotients and roots are the CPU's beside ties", "[vulkan][sweep][divide]") {
  const float_pairs hard = quotients_beside_ties(sweep_size()), any = any_pairs(sweep_size()),
                    tiny = subnormal_pairs(sweep_size());
  for (const char* op : {"Div", "Mod"}) {
    const attributes attrs = op == std::string("Mod") ? integer("fmod", 1) : attributes{};
    check_gpu_bits(op, {.op = op, .inputs = both(hard), .attrs = attrs});
    check_gpu_bits(op, {.op = op, .inputs = both(any), .attrs = attrs});
    check_gpu_bits(op, {.op = op, .inputs = both(beside_multiples(sweep_size(), 0, 1 << 20)), .attrs = attrs});
    check_gpu_bits(op, {.op = op, .inputs = both(tiny), .attrs = attrs}, true);
  }
  check_gpu_bits("Mod", {.op = "Mod", .inputs = both(beside_multiples(sweep_size(), 0, 1 << 20))});
  for (const char* op : {"Reciprocal", "Sqrt", "Softsign"}) {
    for (const std::vector<float>& values : {any.a, hard.b, beside_squares(sweep_size())})
      check_gpu_bits(op, {.op = op, .inputs = {row(values)}});
    check_gpu_bits(op, {.op = op, .inputs = {row(tiny.a)}}, true);
  }
  check_gpu_bits("Mean", {.op = "Mean", .inputs = {row(any.a), row(hard.a), row(hard.b)}});
}

TEST_CASE("GPU quotients of float16 are the CPU's beside ties", "[vulkan][sweep][divide]") {
  const float_pairs pairs = beside_multiples(sweep_size(), 0.5f, 1 << 5),
                    any = beside_multiples(sweep_size(), 0.37f, 3);
  check_gpu_bits("Div, float16", {.op = "Div", .inputs = halves(pairs)});
  check_gpu_bits("Div, float16", {.op = "Div", .inputs = halves(any)});
  check_gpu_bits("Mod, float16", {.op = "Mod", .inputs = halves(pairs), .attrs = integer("fmod", 1)});
  check_gpu_bits("Reciprocal, float16", {.op = "Reciprocal", .inputs = {halves(any)[1]}});
  check_gpu_bits("Sqrt, float16", {.op = "Sqrt", .inputs = {to_half(row(beside_squares(sweep_size())))}});
}

TEST_CASE("GPU chains round quotients, roots and sums as the CPU does", "[vulkan][sweep][divide]") {
  using enum scalar_code;
  const float_pairs pairs = beside_multiples(sweep_size(), 0, 1 << 12);
  check_chain("Div, Floor", {{divide, 0, 1}, {scalar_code::floor, 2}}, both(pairs));
  check_chain("Div, Ceil", {{divide, 0, 1}, {scalar_code::ceil, 2}}, both(pairs));
  check_chain("Reciprocal, Mul, Floor", {{reciprocal, 1}, {multiply, 0, 2}, {scalar_code::floor, 3}}, both(pairs));
  check_chain("Sqrt, Floor", {{scalar_code::sqrt, 0}, {scalar_code::floor, 1}}, {row(beside_squares(sweep_size()))});
  check_chain("Div, Floor, Mul, Sub", {{divide, 0, 1}, {scalar_code::floor, 2}, {multiply, 3, 1}, {subtract, 0, 4}},
              both(pairs));
  // a · b − (a · b, rounded) is 0 if the product is rounded, and its error if a driver fuses the two.
  std::vector<float> products = pairs.a;
  for (size_t i = 0; i < products.size(); ++i)
    products[i] = -(pairs.a[i] * pairs.b[i]);
  std::vector<tensor> inputs = both(pairs);
  inputs.push_back(row(products));
  check_chain("Mul, Add, Floor", {{multiply, 0, 1}, {add, 3, 2}, {scalar_code::floor, 4}}, inputs);
}

TEST_CASE("GPU Round and Cast decide ties as the CPU does", "[vulkan][sweep][divide]") {
  const std::vector<float> middles = beside_multiples(sweep_size(), 0.5f, 1 << 22).a;
  std::vector<float> beside;
  for (size_t i = 0; i < sweep_size(); ++i)
    beside.push_back(std::nextafter(std::floor(middles[i]) + (i % 2 ? 0.5f : 0.f), i % 3 ? INFINITY : -INFINITY));
  for (const std::vector<float>& values : {middles, beside})
    for (bool half : {false, true}) {
      const tensor x = half ? to_half(row(values)) : row(values);
      const std::string type = half ? ", float16" : "";
      for (const char* op : {"Round", "Floor", "Ceil"})
        check_gpu_bits(op + type, {.op = op, .inputs = {x}});
      for (dtype to : {dtype::int32, dtype::int64, dtype::uint8, dtype::int8})
        check_gpu_bits("Cast" + type, {.op = "Cast", .inputs = {x}, .attrs = integer("to", static_cast<int64_t>(to))});
    }
  check_gpu_bits(
      "Cast to float16",
      {.op = "Cast", .inputs = {row(middles)}, .attrs = integer("to", static_cast<int64_t>(dtype::float16))});
}

TEST_CASE("GPU QuantizeLinear rounds as the CPU does", "[vulkan][sweep][divide]") {
  const float_pairs pairs = beside_multiples(sweep_size(), 0.5f, 130);
  for (dtype type : {dtype::uint8, dtype::int8})
    for (bool half : {false, true}) {
      const tensor zeros = random_integers(type, {sweep_count()}, 3, 0, 100);
      check_gpu_bits(half ? "QuantizeLinear, float16" : "QuantizeLinear",
                     {.op = "QuantizeLinear",
                      .inputs = {half ? halves(pairs)[0] : row(pairs.a), half ? halves(pairs)[1] : row(pairs.b), zeros},
                      .attrs = integer("axis", 0)});
    }
  for (float scale : {0.1f, 0.0237f, 3.7f / 255}) { // one for the whole tensor
    std::vector<float> values = beside_multiples(sweep_size(), 0.5f, 130).a;
    for (size_t i = 0; i < sweep_size(); ++i)
      values[i] = std::nextafter((std::floor(pairs.a[i] / pairs.b[i]) + 0.5f) * scale, i % 2 ? INFINITY : -INFINITY);
    check_gpu_bits("QuantizeLinear", {.op = "QuantizeLinear", .inputs = {row(values), scalar(scale)}});
  }
}

TEST_CASE("GPU DynamicQuantizeLinear rounds as the CPU does", "[vulkan][sweep][divide]") {
  const float_pairs pairs = beside_multiples(sweep_size(), 0.5f, 127);
  const size_t each = sweep_size() / 100;
  for (size_t first = 0; first < sweep_size(); first += each) {
    const float step = pairs.b[first], low = -step * static_cast<float>(first / each), high = low + 255 * step;
    const float scale = (high - low) / 255;
    std::vector<float> values{low, high};
    for (size_t i = first; i < first + each; ++i) {
      const float n = std::floor(pairs.a[i] / pairs.b[i]) + 0.5f, v = n * scale;
      if (v > low && v < high)
        values.push_back(i % 3 == 0 ? v : std::nextafter(v, i % 3 == 1 ? INFINITY : -INFINITY));
    }
    values.resize(each, 0);
    check_gpu_bits("DynamicQuantizeLinear", {.op = "DynamicQuantizeLinear", .inputs = {row(values)}, .outputs = 3});
  }
}

TEST_CASE("GPU quantised products and convolutions round as the CPU does", "[vulkan][sweep][divide]") {
  const auto byte = [](dtype type, int64_t value) { return random_integers(type, {}, 1, value, value + 1); };
  for (float result_scale : {0.3f, 0.0123f, 1.7f, 0.77f})
    for (float ratio : {1.f / 8, 3.f / 128, 1.f / 512}) {
      // ratio · sum is on a tie if the quotient of the scales is exact.
      const tensor a_scale = scalar(result_scale * ratio), b_scale = scalar(1), y_scale = scalar(result_scale);
      const tensor a = random_integers(dtype::uint8, {300, 2}, 1, 0, 256),
                   b = random_integers(dtype::int8, {2, 300}, 2, -128, 128);
      const tensor a_zero = byte(dtype::uint8, 101), b_zero = byte(dtype::int8, 3), y_zero = byte(dtype::uint8, 120);
      check_gpu_bits("QLinearMatMul",
                     {.op = "QLinearMatMul", .inputs = {a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero}});
      const tensor x = random_integers(dtype::uint8, {1, 2, 60, 50}, 1, 0, 256);
      const tensor w = random_integers(dtype::int8, {30, 2, 1, 1}, 2, -128, 128);
      check_gpu_bits("QLinearConv",
                     {.op = "QLinearConv", .inputs = {x, a_scale, a_zero, w, b_scale, b_zero, y_scale, y_zero}});
    }
}

TEST_CASE("GPU sums of bytes round as the CPU does", "[vulkan][sweep][divide]") {
  const auto byte = [](int64_t value) { return random_integers(dtype::uint8, {}, 1, value, value + 1); };
  attributes attrs;
  attrs.set("sum_low", -std::numeric_limits<float>::infinity());
  attrs.set("sum_high", std::numeric_limits<float>::infinity());
  for (float z_scale : {0.3f, 0.0123f, 1.7f, 0.77f})
    for (float ratio : {1.f / 2, 1.f / 4, 3.f / 8}) { // sums are on ties if the quotient of the scales is exact
      const tensor own = scalar(z_scale * ratio), more = scalar(z_scale / 2);
      const tensor x = random_integers(dtype::uint8, {1, 2, 60, 50}, 1, 0, 256),
                   w = random_integers(dtype::int8, {30, 2, 1, 1}, 2, -1, 2),
                   r = random_integers(dtype::uint8, {1, 30, 60, 50}, 3, 0, 256);
      check_gpu_bits("QuantizedConv, sum", {.op = "QuantizedConv",
                                            .inputs = {x, w, own, scalar(1), byte(101), tensor(), tensor(), own,
                                                       byte(120), r, more, byte(99), scalar(z_scale), byte(110)},
                                            .attrs = attrs,
                                            .domain = "troupe"});
    }
}

TEST_CASE("GPU means and norms of whole numbers are the CPU's", "[vulkan][sweep][divide]") {
  for (int64_t size : {3, 5, 7}) {
    const int64_t rows = sweep_count() / 3 + 1;
    const tensor x = whole_floats({rows, size}, 1, -999, 1000),
                 axes = tensor::of<int64_t>({1}, std::vector<int64_t>{1});
    for (const char* op : {"ReduceMean", "ReduceL2"})
      check_gpu_bits(op, {.op = op, .inputs = {x, axes}});
    const tensor ones = whole_floats({rows, size}, 2, 1, 2);
    check_gpu_bits("Softmax of equals", {.op = "Softmax", .inputs = {ones}});
    attributes norm = integer("axis", 1);
    norm.set("p", int64_t{1});
    check_gpu_bits("LpNormalization", {.op = "LpNormalization", .inputs = {x}, .attrs = norm});
    const tensor planes = whole_floats({1, rows, 1, size}, 3, -999, 1000);
    check_gpu_bits("GlobalAveragePool", {.op = "GlobalAveragePool", .inputs = {planes}});
    check_gpu_bits("AveragePool",
                   {.op = "AveragePool", .inputs = {planes}, .attrs = integers({{"kernel_shape", {1, 3}}})});
  }
}

TEST_CASE("GPU integer quotients and remainders are the CPU's", "[vulkan][sweep][divide]") {
  for (dtype type : {dtype::int32, dtype::int64, dtype::uint32, dtype::uint64, dtype::int8, dtype::uint8}) {
    const bool is_signed = type == dtype::int32 || type == dtype::int64 || type == dtype::int8;
    const shape dims{sweep_count()};
    const int64_t top = bits_of(type) == 8 ? (is_signed ? 127 : 255) : 2'000'000'000;
    const tensor b = random_integers(type, dims, 2, 1, bits_of(type) == 8 ? 100 : 70'000);
    for (const char* op : {"Div", "Mod"})
      check_gpu_bits(std::string(op) + ", " + std::string(to_string(type)),
                     {.op = op, .inputs = {random_integers(type, dims, 1, is_signed ? -top : 0, top), b}});
  }
}

TEST_CASE("GPU Range has the CPU's elements", "[vulkan][sweep][divide]") {
  for (const auto& [start, delta] : {std::pair{0.f, 0.1f}, {-7.3f, 0.0237f}, {1e6f, -0.3f}}) {
    const float limit = start + delta * static_cast<float>(sweep_size());
    check_gpu_bits("Range", {.op = "Range", .inputs = {scalar(start), scalar(limit), scalar(delta)}});
  }
}

TEST_CASE("GPU Resize takes the CPU's nearest neighbours", "[vulkan][sweep][divide]") {
  const tensor x = whole_floats({1, 1, 1, 997}, 1, 0, 1 << 20);
  // Others are left to the CPU: no line through whole numbers gives the neighbours that float arithmetic finds.
  int on_gpu = 0;
  for (const char* coordinates : {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"})
    for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
      for (int64_t out : {331, 997, 1994, 2991, 70'001}) {
        attributes attrs;
        attrs.set("coordinate_transformation_mode", std::string(coordinates));
        attrs.set("nearest_mode", std::string(nearest));
        const tensor sizes = tensor::of<int64_t>({4}, std::vector<int64_t>{1, 1, 1, out});
        const kernel_case c{.op = "Resize", .inputs = {x, {}, {}, sizes}, .attrs = attrs};
        if (has_gpu_kernel(c)) {
          check_gpu_bits("Resize", c);
          ++on_gpu;
        }
      }
  CHECK(on_gpu >= 40);
}
