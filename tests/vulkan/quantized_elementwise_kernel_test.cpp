// troupe.QuantizedElementwise on the GPU: bytes have to be the reference's exactly.
#include "ops/composed/fused_elementwise.hpp"
#include "support/catch.hpp"
#include "support/kernel_case.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr dtype u8 = dtype::uint8, i8 = dtype::int8, real = dtype::float32;

struct chain_operand {
  dtype type;
  shape dims;
  bool zero = true;
};

/// `y`: float32 if the result is not quantised.
kernel_case chain(const std::vector<chain_operand>& operands, const elementwise_program& program, dtype y,
                  bool y_zero = true) {
  kernel_case c{.op = "QuantizedElementwise", .attrs = to_attributes(program), .domain = "troupe"};
  c.attrs.set("operands", static_cast<int64_t>(operands.size()));
  uint64_t seed = 1;
  const auto bytes = [&](dtype type, const shape& dims) {
    return random_integers(type, dims, seed++, type == u8 ? 0 : -128, type == u8 ? 256 : 128);
  };
  for (const auto& [type, dims, zero] : operands) {
    const bool is_bytes = type != real;
    c.inputs.push_back(is_bytes ? bytes(type, dims) : random_floats(dims, seed++, -2, 2));
    c.inputs.push_back(is_bytes ? random_floats({}, seed++, 0.01f, 0.02f) : tensor());
    c.inputs.push_back(is_bytes && zero ? bytes(type, {}) : tensor());
  }
  if (y != real) {
    c.inputs.push_back(random_floats({}, seed++, 0.01f, 0.04f));
    c.inputs.push_back(y_zero ? bytes(y, {}) : tensor());
  }
  return c;
}

elementwise_program one_step(scalar_code code, int32_t b = 0) {
  return {{{code, 0, b}}, {}};
}

} // namespace

TEST_CASE("GPU QuantizedElementwise of one step", "[vulkan][quantised]") {
  const auto add = one_step(scalar_code::add, 1), multiply = one_step(scalar_code::multiply, 1);
  for (const shape& dims : {shape{2, 8, 5, 6}, shape{1, 3, 5, 7}, shape{4, 1031}, shape{0, 4}}) {
    check_gpu_kernels(chain({{u8, dims}, {u8, dims}}, add, u8));
    check_gpu_kernels(chain({{i8, dims}, {u8, dims, false}}, multiply, i8));
    check_gpu_kernels(chain({{u8, dims}, {real, dims}}, add, u8));
    check_gpu_kernels(chain({{u8, dims}, {i8, dims}}, add, real));
    check_gpu_kernels(chain({{real, dims}, {real, dims}}, add, i8));
    check_gpu_kernels(chain({{u8, dims}}, one_step(scalar_code::same), i8));
    check_gpu_kernels(chain({{i8, dims, false}}, one_step(scalar_code::relu), u8));
    check_gpu_kernels(chain({{u8, dims}}, one_step(scalar_code::round), u8));
  }
  check_gpu_kernels(chain({{u8, {2, 4}}, {u8, {2, 4}}}, add, u8, false));
}

TEST_CASE("GPU QuantizedElementwise broadcasts", "[vulkan][quantised]") {
  const auto add = one_step(scalar_code::add, 1);
  check_gpu_kernels(chain({{u8, {2, 8, 5, 6}}, {u8, {8, 1, 1}}}, add, u8));
  check_gpu_kernels(chain({{u8, {3, 1, 4}}, {i8, {5, 1}}}, add, u8));
  check_gpu_kernels(chain({{u8, {6, 4}}, {i8, {}}}, add, u8));
  check_gpu_kernels(chain({{u8, {1}}, {real, {6, 4}}}, add, i8));
}

TEST_CASE("GPU QuantizedElementwise of several steps", "[vulkan][quantised]") {
  // relu(x0 + x1) · 0.5 − x2, then minima with all of eight operands.
  const elementwise_program few{
      {{scalar_code::add, 0, 1}, {scalar_code::relu, 3}, {scalar_code::multiply, 4, -1}, {scalar_code::subtract, 5, 2}},
      {0.5f}};
  for (const shape& dims : {shape{2, 8, 3, 2}, shape{3, 7}})
    check_gpu_kernels(chain({{u8, dims}, {i8, dims}, {real, dims}}, few, u8));
  elementwise_program many;
  std::vector<chain_operand> operands{{u8, {4, 6}}};
  for (int32_t i = 1; i < 8; ++i) {
    operands.push_back({i % 3 == 0 ? real : i % 3 == 1 ? i8 : u8, {4, 6}, i % 2 == 0});
    many.steps.push_back({scalar_code::minimum, i == 1 ? 0 : 6 + i, i});
  }
  check_gpu_kernels(chain(operands, many, i8));
  check_gpu_kernels(chain(operands, many, real));
}
