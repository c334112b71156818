#version 450
// ScatterND into a copy of the data: tuples of indices say where runs of updates go. Without a reduction an invocation
// puts one word of one run. With one it puts its word of all runs, in order, as in scatter_elements.comp. Indices as in
// gather.comp.
// Variants: w8 w16 w32 w64 w128 f32 f16 f64 i32 u32 i64 u64 i16 u16 i8 u8
#extension GL_GOOGLE_include_directive : require
#include "scatter.glsl"
#include "parameters/scatter_nd.h"

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint first = index / run, r = index - first * run;
  for (uint k = 0u; k < repeats; ++k) {
    const uint at = first + k;
    uint t = r;
    for (uint i = 0u; i < tuple; ++i)
      t += clamp_index(indices[(at * tuple + i) * index_words], axes[i].x) * axes[i].y;
    put(t, at * run + r);
  }
}
