#version 450
// Copies inside the GPU's memory (vulkan/copy_kernel.hpp), several a dispatch: y counts copies, x shares one. A copy is
// from buffer 2 i + 1 to buffer 2 i + 2, which are as long as what is copied.
// Variants: w128
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = 256) in;

#define COPY_BUFFERS(i, from_binding, to_binding)                                          \
  layout(set = 0, binding = from_binding, std430) readonly buffer source##i { T from##i[]; }; \
  layout(set = 0, binding = to_binding, std430) writeonly buffer target##i { T to##i[]; };

COPY_BUFFERS(0, 1, 2)
COPY_BUFFERS(1, 3, 4)
COPY_BUFFERS(2, 5, 6)
COPY_BUFFERS(3, 7, 8)
COPY_BUFFERS(4, 9, 10)
COPY_BUFFERS(5, 11, 12)
COPY_BUFFERS(6, 13, 14)
COPY_BUFFERS(7, 15, 16)

#define COPY(i)                                             \
  case i:                                                   \
    for (uint at = first; at < from##i.length(); at += all) \
      to##i[at] = from##i[at];                              \
    break;

void main() {
  const uint first = gl_GlobalInvocationID.x, all = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
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
