// GPU launches of float elementwise operators: each is a chain of steps for shaders/elementwise.comp.
#pragma once

#include "launch/launch.hpp"
#include "ops/fused_elementwise.hpp"

namespace troupe {

/// Codes of shaders/elementwise.comp behind those of elementwise_code.
enum class gpu_step : uint8_t {
  sign = 64,
  round,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  thresholded_relu, // b = alpha
  softsign,
  mish,
  selu,             // b = alpha, c = gamma
  celu,             // b = alpha
  shrink,           // b = lambd, c = bias
  modulo,           // the sign of b
  truncated_modulo, // the sign of a
  same = 255        // a itself
};

/// One step for the shader: operand i is input i, −1 − k constant k; results come behind the inputs, as in
/// `elementwise_step`.
struct gpu_elementwise_step {
  uint32_t code = 0;
  int32_t a = 0, b = 0, c = 0;
};

/// Returns the launch of a chain over all inputs of `call` that are present, counted without the others, which broadcast to
/// output 0; empty for other than float32 and float16, and for more than 8 inputs.
launch_lists launch_chain(const gpu_call& call, const std::vector<gpu_elementwise_step>& steps,
                          const std::vector<float>& constants);

/// Launches of one step over the call's own inputs.
template <auto Code>
launch_lists launch_step(const gpu_call& call) {
  return launch_chain(call, {{static_cast<uint32_t>(Code), 0, 1, 2}}, {});
}

/// Launches of one step of input 0 and numbers.
launch_lists launch_with_constants(const gpu_call& call, uint32_t code, const std::vector<float>& constants);
template <class Code>
launch_lists launch_with_constants(const gpu_call& call, Code code, const std::vector<float>& constants) {
  return launch_with_constants(call, static_cast<uint32_t>(code), constants);
}

/// A float attribute of an operator, and what it is where it is absent.
struct real_attribute {
  const char* name;
  float otherwise;
};

/// Launches of one step whose operands b and c are attributes.
template <auto Code>
launch_lists launch_with_attributes(const gpu_call& call, std::initializer_list<real_attribute> names) {
  std::vector<float> constants;
  for (const real_attribute& a : names)
    constants.push_back(call.attrs.real(a.name, a.otherwise));
  return launch_with_constants(call, Code, constants);
}

} // namespace troupe
