#version 450
// Col2Im: an element of an image is the sum of all elements of columns that were taken from its place. One invocation
// an element.
// Variants: f32 f16 f64 i32 i64 u32 u64 i16 u16 i8 u8
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/col2im.h"

layout(local_size_x = 128) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { T y[]; };

/// Which position of the block has its tap `t` at a place; 0xffffffff if none has.
uint position_of(uint place, uint t, uint axis) {
  const int from = int(place + pad[axis]) - int(t * dilation[axis]);
  const uint position = uint(max(from, 0)) / stride[axis];
  return from >= 0 && position * stride[axis] == uint(from) && position < out_size[axis] ? position : 0xffffffffu;
}

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint w = index % in_size.z, h = index / in_size.z % in_size.y, d = index / (in_size.z * in_size.y) % in_size.x;
  const uint plane = index / (in_size.x * in_size.y * in_size.z);
  A sum = A(0);
  for (uint td = 0u; td < kernel.x; ++td) {
    const uint od = position_of(d, td, 0u);
    for (uint th = 0u; th < (od == 0xffffffffu ? 0u : kernel.y); ++th) {
      const uint oh = position_of(h, th, 1u);
      for (uint tw = 0u; tw < (oh == 0xffffffffu ? 0u : kernel.z); ++tw) {
        const uint ow = position_of(w, tw, 2u);
        if (ow != 0xffffffffu)
          sum += A(x[(plane * taps + (td * kernel.y + th) * kernel.z + tw) * positions
              + (od * out_size.y + oh) * out_size.z + ow]);
      }
    }
  }
  y[index] = T(sum);
}
