#version 450
// Pooling over a window: maximum, average or p-norm, any layout.
//
// An invocation computes one output element, or, channels last, four channels of one. Taps of a row are read four at a
// time, so that loads overlap. Taps outside the input take no part (an average may count those in the padding).
// Variants: f32 f16 i8 u8
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "pool.glsl"
#include "parameters/pool.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint KIND = pool_kind_maximum;
layout(constant_id = 1) const bool VECTORS = false; // not for integers
layout(constant_id = 2) const bool INDICES = false; // write where the maximum is; not with VECTORS
layout(constant_id = 3) const bool COUNT_PADDING = false;
layout(constant_id = 4) const uint KERNEL_H = 3;
layout(constant_id = 5) const uint KERNEL_W = 3;
layout(constant_id = 6) const uint ORDER_BITS = 0; // p of a p-norm

layout(set = 0, binding = 1, std430) readonly buffer input_buffer { T x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer output_buffer { T y[]; };
layout(set = 0, binding = 3, std430) writeonly buffer index_buffer { uvec2 indices[]; }; // the output where not INDICES
#ifdef T4
layout(set = 0, binding = 1, std430) readonly buffer input_vector_buffer { T4 x4[]; };
layout(set = 0, binding = 2, std430) writeonly buffer output_vector_buffer { T4 y4[]; };
#endif

vec4 read_input(uint at) {
#ifdef T4
  if (VECTORS)
    return vec4(x4[at / 4]);
#endif
  return vec4(float(x[at]), 0.0, 0.0, 0.0);
}

/// How many taps along an axis of output position `start` are in the input or its padding.
int padded_taps(int start, uint size, int end, int step, uint kernel) {
  const int room = int(size) + end - start;
  return max(0, min(int(kernel), (room + step - 1) / step));
}

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint pixels = out_size.x * out_size.y * out_size.z;
  uint c, pixel, image;
  if (channels_first != 0) {
    c = index / pixels;
    pixel = index - c * pixels;
    image = c / channels;
    c -= image * channels;
  } else {
    pixel = index / channels;
    c = index - pixel * channels;
    image = pixel / pixels;
    pixel -= image * pixels;
  }
  const uint plane = image * channels + c;
  c *= VECTORS ? 4 : 1;
  const uint row = pixel / out_size.z, od = row / out_size.y;
  const ivec3 start = ivec3(od, row - od * out_size.y, pixel - row * out_size.z) * stride.xyz - pad.xyz;
  const uint base = image * in_image + c * in_channel;
  const float order = uintBitsToFloat(ORDER_BITS);

  vec4 best = pool_start(KIND);
  uint taps = 0, where = 0;
  bool found = false;
  for (uint kd = 0; kd < kernel_d; ++kd) {
    const uint d = uint(start.x + int(kd) * dilation.x);
    if (d >= in_size.x)
      continue;
    for (uint kh = 0; kh < KERNEL_H; ++kh) {
      const uint h = uint(start.y + int(kh) * dilation.y);
      if (h >= in_size.y)
        continue;
      const uint line = (d * in_size.y + h) * in_size.z;
      for (uint kw = 0; kw < KERNEL_W; kw += 4) {
        vec4 values[4];
        [[unroll]] for (uint i = 0; i < 4; ++i) {
          const uint w = uint(start.z + int(kw + i) * dilation.z);
          if (kw + i < KERNEL_W && w < in_size.z)
            values[i] = read_input(base + (line + w) * in_pixel);
        }
        [[unroll]] for (uint i = 0; i < 4; ++i) {
          const uint w = uint(start.z + int(kw + i) * dilation.z);
          if (kw + i < KERNEL_W && w < in_size.z) {
            if (INDICES && (!found || values[i].x > best.x || exact_isnan(values[i].x))) {
              found = true;
              where = columns_first != 0 ? (w * in_size.y + h) * in_size.x + d : line + w;
            }
            best = pool_step(KIND, best, values[i], order);
            ++taps;
          }
        }
      }
    }
  }
  if (COUNT_PADDING)
    taps = uint(padded_taps(start.x, in_size.x, pad_end.x, dilation.x, kernel_d) *
                padded_taps(start.y, in_size.y, pad_end.y, dilation.y, KERNEL_H) *
                padded_taps(start.z, in_size.z, pad_end.z, dilation.z, KERNEL_W));
  if (KIND == pool_kind_average)
    best = taps == 0 ? vec4(0.0) : exact_quotients(best, float(taps));
  best = pool_finish(KIND, best, order);
  const uint to = image * out_image + c * out_channel + pixel * out_pixel;
#ifdef T4
  if (VECTORS)
    y4[to / 4] = T4(best);
  else
    y[to] = T(best.x);
#else
  y[to] = T(clamp(best.x, INTEGER_LOWEST, 255.0));
#endif
  if (INDICES)
    indices[plane * pixels + pixel] = uvec2(plane * in_size.x * in_size.y * in_size.z + where, 0);
}
