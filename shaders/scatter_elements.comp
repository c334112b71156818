#version 450
// ScatterElements into a copy of the data: y[i, indices[i, j, k], k] takes updates[i, j, k]. Without a reduction an
// invocation puts one update. With one it walks along the indexed axis, in order: no other invocation writes what it
// writes, and sums are the same in every run. Indices as in gather.comp; axes are those of the indices, innermost
// first.
// Variants: w8 w16 w32 w64 f32 f16 f64 i32 u32 i64 u64 i16 u16 i8 u8
#extension GL_GOOGLE_include_directive : require
#include "scatter.glsl"
#include "parameters/scatter_elements.h"

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  uint rest = index, f = 0u, t = 0u;
  for (uint i = 0u; i < rank; ++i) {
    const uint next = rest / axes[i].x, at = rest - next * axes[i].x;
    f += at * axes[i].y;
    t += at * axes[i].z;
    rest = next;
  }
  for (uint i = 0u; i < repeats; ++i, f += repeat_step)
    put(t + clamp_index(indices[f * index_words], bound) * step, f);
}
