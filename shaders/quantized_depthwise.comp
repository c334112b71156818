#version 450
// Convolutions of bytes with scales and one input channel a group, any layout and multiplier
// (src/ops/composed/fused_quantized.cpp): what depthwise.comp is for floats, and parts as it does. An invocation's four
// channels are a word.
// Variants: i8
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "parameters/product.h"
#include "parameters/depthwise.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const bool VECTORS = true;
layout(constant_id = 1) const uint PIXELS = 1; // dilation 1 unless PIXELS is 1
layout(constant_id = 2) const uint KERNEL_H = 3;
layout(constant_id = 3) const uint KERNEL_W = 3;
layout(constant_id = 4) const uint STRIDE_W = 1;
layout(constant_id = 5) const uint FLAGS = 0;
layout(constant_id = 6) const uint ACTIVATION = 0;

#define SUM_RANGE vec2(0) // ends in no sum
#include "quantized_result.glsl"

const bool TAPS_FIRST = (FLAGS & product_taps_first) != 0u;
const uint SPAN = (PIXELS - 1) * STRIDE_W + KERNEL_W; // inputs of a row that an invocation reads, unless dilated
// Rows of the kernel that are on their way together: invocations of single pixels are few, and wait.
const uint ROWS = PIXELS > 1 ? 1 : KERNEL_H * KERNEL_W > 49 ? 1 : KERNEL_H;

layout(set = 0, binding = 1, std430) readonly buffer input_buffer { uint8_t x[]; };
layout(set = 0, binding = 1, std430) readonly buffer input_word_buffer { uint x_words[]; };
layout(set = 0, binding = 2, std430) readonly buffer weight_buffer { uint8_t w[]; };
layout(set = 0, binding = 2, std430) readonly buffer weight_word_buffer { uint w_words[]; };

/// Elements from `at` on, as they are in memory: a word, or one of them.
uint read_input(uint at) { return VECTORS ? x_words[at / 4] : uint(x[at]); }

/// Elements of the input, less the zero point.
ivec4 centred_input(uint bits) {
  return (VECTORS ? signed_bytes(bits ^ A_FLIP) : ivec4(centred_byte(bits, A_UNSIGNED), 0, 0, 0)) - a_middle();
}

/// A tap of four filters as a word, or of one.
uint read_weight(uint first, uint tap) {
  if (VECTORS && TAPS_FIRST)
    return w_words[(tap * filters + first) / 4];
  uint bits = 0;
  [[unroll]] for (uint i = 0; i < (VECTORS ? 4 : 1); ++i)
    bits |= uint(w[(first + i) * (kernel_d * KERNEL_H * KERNEL_W) + tap]) << (8 * i);
  return bits;
}

ivec4 centred_weight(uint bits) {
  return VECTORS ? signed_bytes(bits ^ B_FLIP) : ivec4(centred_byte(bits, B_UNSIGNED), 0, 0, 0);
}

void main() {
  uint rest = flat_group() * 128u + gl_LocalInvocationID.x;
  if (rest >= count)
    return;
  const uint per_image = VECTORS ? filters / 4 : filters, pixels = out_size.x * out_size.y * out_size.z;
  uint f, pixel, image;
  if (channels_first != 0) {
    f = rest / pixels;
    pixel = rest - f * pixels;
    image = f / per_image;
    f -= image * per_image;
  } else {
    pixel = rest / per_image;
    f = rest - pixel * per_image;
    image = pixel / pixels;
    pixel -= image * pixels;
  }
  f *= VECTORS ? 4 : 1;
  const uint row = pixel / out_size.z, first = (pixel - row * out_size.z) * PIXELS, od = row / out_size.y;
  const ivec3 start = ivec3(od, row - od * out_size.y, first) * stride.xyz - pad.xyz;
  const uint base = image * in_image + (VECTORS ? f : f / multiplier) * in_channel;
  ivec4 middles = ivec4(0);
  [[unroll]] for (uint i = 0; i < (VECTORS ? 4 : 1); ++i)
    middles[i] = B_CENTRED ? 0 : b_middle(f + i);

  const column_terms own = VECTORS ? terms_of(f) : no_terms; // asked for before anything is waited for
  const uint nothing = uint(a_zero_byte) * (VECTORS ? 0x01010101u : 1u); // what adds nothing, as it is loaded
  ivec4 sums[PIXELS];
  [[unroll]] for (uint p = 0; p < PIXELS; ++p)
    sums[p] = ivec4(0);
  for (uint kd = 0; kd < kernel_d; ++kd) {
    const uint d = uint(start.x + int(kd) * dilation.x);
    [[unroll]] for (uint first_row = 0; first_row < KERNEL_H; first_row += ROWS) {
      // Everything is asked for before anything is used, without a branch: beyond the input, what is at its end.
      uint values[ROWS * SPAN], taps[ROWS * KERNEL_W];
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const uint h = uint(start.y + int(first_row + r) * dilation.y);
        const uint line = base + (min(d, in_size.x - 1) * in_size.y + min(h, in_size.y - 1)) * in_size.z * in_pixel;
        [[unroll]] for (uint i = 0; i < SPAN; ++i) {
          const uint at = uint(start.z + int(i) * dilation.z);
          const uint value = read_input(line + min(at, in_size.z - 1) * in_pixel);
          values[r * SPAN + i] = d < in_size.x && h < in_size.y && at < in_size.z ? value : nothing;
        }
        [[unroll]] for (uint kw = 0; kw < KERNEL_W; ++kw)
          taps[r * KERNEL_W + kw] = read_weight(f, (kd * KERNEL_H + first_row + r) * KERNEL_W + kw);
      }
      [[unroll]] for (uint r = 0; r < ROWS; ++r)
        [[unroll]] for (uint i = 0; i < SPAN; ++i) {
          const ivec4 value = centred_input(values[r * SPAN + i]);
          [[unroll]] for (uint p = 0; p < PIXELS; ++p)
            if (i >= p * STRIDE_W && i - p * STRIDE_W < KERNEL_W)
              sums[p] += value * (centred_weight(taps[r * KERNEL_W + i - p * STRIDE_W]) - middles);
        }
    }
  }
  const uint to = image * out_image + f * out_channel;
  const vec2 act = vec2(act_alpha, act_beta);
  [[unroll]] for (uint p = 0; p < PIXELS; ++p)
    if (first + p < out_size.w) {
      const uint at = to + (row * out_size.w + first + p) * out_pixel;
      if (VECTORS)
        write_results(at, finished_columns(sums[p], own, act), 0);
      else
        write_result(at, finished_column(sums[p].x, f, act));
    }
}
