// The program of a fused elementwise chain: a short list of steps over operands that broadcast together.
//
// Attributes of `troupe.Elementwise`: `steps`, four integers a step (code, a, b, c), and `constants` (floats). Operands are coded
// by one integer: 0 ≤ i < inputs is input i; inputs + j is the result of step j; −1 − k is constants[k]. Unused operands are 0.
// The result of the last step is the output.
#pragma once

#include "graph/attributes.hpp"

#include <optional>

namespace troupe {

enum class elementwise_code : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  power,
  minimum,
  maximum, // a ∘ b
  negate,
  absolute,
  reciprocal,
  square_root,
  exponential,
  logarithm,
  error_function,
  tangent_h,
  sine,
  cosine,
  floor,
  ceiling,
  softplus, // f(a)
  relu,
  sigmoid,
  hard_swish,
  gelu,
  gelu_tanh,    // f(a), as in ops/activation.hpp
  clip,         // min(max(a, b), c)
  hard_sigmoid, // max(0, min(1, b · a + c))
  leaky_relu,
  swish,
  elu, // f(a), alpha = b
};

struct elementwise_step {
  elementwise_code code;
  int32_t a = 0, b = 0, c = 0;

  bool operator==(const elementwise_step&) const = default;
};

/// Longest chain.
inline constexpr size_t max_elementwise_steps = 16;

struct elementwise_program {
  std::vector<elementwise_step> steps;
  std::vector<float> constants;
};

/// Returns how many operands a step of this code reads.
int operand_count(elementwise_code code);

/// Returns the code of the ai.onnx operator `op_type` whose operands are its inputs alone, nullopt where there is none.
std::optional<elementwise_code> elementwise_code_of(std::string_view op_type);

/// Reads a node's attributes and checks every operand against `inputs`; throws `errc::invalid_model`.
elementwise_program parse_elementwise(const attributes& attrs, size_t inputs);

/// Returns the attributes that `parse_elementwise` reads.
attributes to_attributes(const elementwise_program& program);

} // namespace troupe
