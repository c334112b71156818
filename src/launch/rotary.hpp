// What kernels that rotate heads (shaders/rotary.comp, shaders/projections.glsl) read of a call of troupe.Rotary or
// RotaryEmbedding.
#pragma once

#include "launch/launch.hpp"
#include "launch/parameters.hpp"

namespace troupe {

struct rotary_call {
  /// Without the numbers of invocations, which a kernel's rule fills in.
  shader::rotary params;
  int64_t batch = 0;
  bool interleaved = false, positions = false; // positions: input 3 says which rows of the tables
};

/// Returns what a call of troupe.Rotary or RotaryEmbedding, whose inputs are X, cosines, sines and perhaps positions,
/// asks for. Throws `errc::invalid_input` if their dims do not fit.
rotary_call fused_rotary_call(const gpu_call& call);
rotary_call rotary_embedding_call(const gpu_call& call);

/// Returns whether kernels read the types of these operands: X, cosines, sines and, if there are any, positions.
bool takes_rotary_operands(const operand& x, const operand& cosines, const operand& sines, const operand* positions);

} // namespace troupe
