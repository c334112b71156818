#version 450
// Copies inside the GPU's memory (vulkan/row_copies.hpp), several a dispatch: values as one row, and rows of caches
// between orders of positions, batch and heads. y counts copies, x shares one. A copy is from buffer 2 i + 1 to buffer
// 2 i + 2. In f16_f32 words of four float16 become words of four float32.
// Variants: w128 f16_f32
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "parameters/copy_rows.h"

layout(local_size_x = 256) in;

#ifdef TROUPE_FROM_f16
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define FROM f16vec4
#define TO vec4
#else
#define FROM uvec4
#define TO uvec4
#endif

#define COPY_BUFFERS(i, from_binding, to_binding)                                            \
  layout(set = 0, binding = from_binding, std430) readonly buffer source##i { FROM source_of##i[]; }; \
  layout(set = 0, binding = to_binding, std430) writeonly buffer target##i { TO target_of##i[]; };

COPY_BUFFERS(0, 1, 2)
COPY_BUFFERS(1, 3, 4)
COPY_BUFFERS(2, 5, 6)
COPY_BUFFERS(3, 7, 8)
COPY_BUFFERS(4, 9, 10)
COPY_BUFFERS(5, 11, 12)
COPY_BUFFERS(6, 13, 14)
COPY_BUFFERS(7, 15, 16)

/// Where word `index` of a copy is: counted along a row, then heads, batch and positions.
uint place_of(uint index, uvec4 size, uvec4 steps) {
  if (index < size.x) // all words of a value: what follows divides, and takes longer than the copy
    return steps.x + index;
  const uint row = index / size.x, head_row = row / size.y;
  return steps.x + index - row * size.x + (row - head_row * size.y) * steps.y + (head_row % size.z) * steps.z +
         head_row / size.z * steps.w;
}

#define COPY(i)                                                                                        \
  case i:                                                                                              \
    for (uint at = first; at < count; at += all)                                                       \
      target_of##i[place_of(at, size, to[i])] = TO(source_of##i[place_of(at, size, from[i])]);         \
    break;

void main() {
  const uint first = gl_GlobalInvocationID.x, all = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  const uvec4 size = sizes[gl_WorkGroupID.y];
  const uint count = size.x * size.y * size.z * size.w;
  switch (gl_WorkGroupID.y) {
    COPY(0)
    COPY(1)
    COPY(2)
    COPY(3)
    COPY(4)
    COPY(5)
    COPY(6)
    COPY(7)
  }
}
