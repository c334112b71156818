// The program of a fused elementwise chain: a short list of steps over operands that broadcast together.
//
// Attributes of `troupe.Elementwise`: `steps`, four integers a step (code, a, b, c), and `constants` (floats). Operands
// are coded by one integer: 0 ≤ i < inputs is input i; inputs + j is the result of step j; −1 − k is constants[k].
// Unused operands are 0. The result of the last step is the output.
#pragma once

#include "ops/scalar_function.hpp"

namespace troupe {

struct elementwise_step {
  scalar_code code;
  int32_t a = 0, b = 0, c = 0;

  bool operator==(const elementwise_step&) const = default;
};

/// Longest chain.
inline constexpr size_t max_elementwise_steps = 16;

struct elementwise_program {
  std::vector<elementwise_step> steps;
  std::vector<float> constants;
};

/// Returns the program that is one call of the first inputs.
elementwise_program single_step(const scalar_call& call);

/// Reads a node's attributes and checks every operand against `inputs`; throws `errc::invalid_model`.
elementwise_program parse_elementwise(const attributes& attrs, size_t inputs);

/// Returns the attributes that `parse_elementwise` reads.
attributes to_attributes(const elementwise_program& program);

} // namespace troupe
