#version 450
// Sums of products of one or two operands over any axes: Einsum, and MatMul of types that the matrix kernels do not
// know. One invocation a result. Constants: 0 whether there are two operands.
// Variants: f32 f16 f64 i32 i64 u32 u64 i16 u16 i8 u8
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/contraction.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const bool two = true;

layout(set = 0, binding = 1, std430) readonly buffer operand0 { T a[]; };
layout(set = 0, binding = 2, std430) readonly buffer operand1 { T b[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { T y[]; };

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  uint rest = index;
  uvec2 start = uvec2(0u);
  for (uint i = 0u; i < kept_rank; ++i) {
    const uint next = rest / kept[i].x;
    start += (rest - next * kept[i].x) * kept[i].yz;
    rest = next;
  }
  A sum = A(0);
  for (uint k = 0u; k < summed; ++k) {
    uvec2 at = start;
    rest = k;
    for (uint i = 0u; i < summed_rank; ++i) {
      const uint next = rest / reduced[i].x;
      at += (rest - next * reduced[i].x) * reduced[i].yz;
      rest = next;
    }
    sum += two ? A(a[at.x]) * A(b[at.y]) : A(a[at.x]);
  }
  y[index] = T(sum);
}
