// Launches of products of few rows by several matrices (shaders/projections.glsl), for troupe.Projections and
// MatMulNBits.
#pragma once

#include "launch/product.hpp"
#include "launch/rotary.hpp"
#include "ops/contrib/matmul_nbits.hpp"

namespace troupe {

/// The most rows that the kernels for few of them take.
inline constexpr int64_t most_few_rows = 4;

/// One matrix of weights: an input, with what belongs to it.
struct few_rows_part {
  size_t weights, scales = no_input, zeros = no_input, bias = no_input; // inputs
  size_t out = 0;                                                       // output
  int64_t n = 0;                                                        // columns
  bool transposed = false;                                              // weights of floats are [N, K]
  bool rotated = false;                                                 // in pairs
  activation act;
};

/// How columns are rotated, and the inputs that say by what.
struct few_rows_rotary {
  rotary_call how;
  size_t cosines = no_input, sines = no_input, positions = no_input;
};

/// Everything that the kernels need to know. If gated, the two parts' product is part 0's output.
struct few_rows_call {
  const gpu_call& call;
  std::string name; // of the kernel
  int64_t rows = 0, depth = 0;
  uint32_t norm = shader::rows_as_they_are;
  float epsilon = 0;
  size_t norm_scale = no_input, norm_shift = no_input, residual = no_input; // inputs; input 0 is multiplied
  bool gated = false;
  bool wide = false; // results are float32
  std::vector<few_rows_part> parts = {};
  std::optional<nbits_shape> packed = {};     // if the weights are codes: all parts', but for the columns
  std::optional<few_rows_rotary> rotary = {}; // if a part is rotated
};

/// Returns the ways to run such a call; none if the rows are not few or the device cannot.
launch_lists few_rows_launches(const few_rows_call& c);

/// Returns the way that needs subgroup arithmetic: loads are on their way while other elements are multiplied. nullopt
/// if it does not suit.
std::optional<launch_list> few_rows_product(const gpu_call& call, const float_product& p);

} // namespace troupe
