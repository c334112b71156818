// GPU launches of integer arithmetic: shaders/integer.comp.
#pragma once

#include "launch/elementwise.hpp"

namespace troupe {

/// Functions of shaders/integer.comp.
enum class integer_code : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  modulo,           // the sign of b
  truncated_modulo, // the sign of a
  minimum,          // of two or three operands
  maximum,
  bits_and,
  bits_or,
  bits_xor,
  shift_left,
  shift_right,
  negate,
  absolute,
  sign,
  complement,
  raise, // max(a, b)
  lower, // min(a, b)
  clip,  // min(max(a, b), c)
  relu,
  scaled_relu, // a < 0 ? a · b : a
  same         // a
};

/// Launches of one function over all inputs that are present (at most three); empty where they are no integers of the
/// output's type.
launch_lists launch_integers(const gpu_call& call, integer_code code);

/// Launches over the call's own inputs, by element type: a step for floats, a function for integers.
template <auto Float, integer_code Integer>
launch_lists launch_numeric(const gpu_call& call) {
  return types::floats & set_of(call.outputs.at(0).type) ? launch_step<Float>(call) : launch_integers(call, Integer);
}

template <integer_code Code>
launch_lists launch_integer(const gpu_call& call) {
  return launch_integers(call, Code);
}

} // namespace troupe
