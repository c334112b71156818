#version 450
// Convolution with one input channel a group (depthwise), any layout and multiplier.
//
// Channels-last with as many filters as channels: an invocation computes four channels of PIXELS neighbouring pixels of
// a row, and reads each input once for all of them. Otherwise: one element. Taps along height and width are unrolled.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "activation.glsl"
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

const bool HAS_BIAS = (FLAGS & product_bias) != 0u;
const bool HAS_RESIDUAL = (FLAGS & product_residual) != 0u;
const bool TAPS_FIRST = (FLAGS & product_taps_first) != 0u;
const uint SPAN = (PIXELS - 1) * STRIDE_W + KERNEL_W; // inputs of a row that an invocation reads, unless dilated
// Rows of the kernel that are on their way together: invocations of single pixels are few, and wait.
const uint ROWS = PIXELS > 1 ? 1 : KERNEL_H * KERNEL_W > 25 ? 1 : KERNEL_H;

layout(set = 0, binding = 1, std430) readonly buffer input_buffer { T x[]; };
layout(set = 0, binding = 1, std430) readonly buffer input_vector_buffer { T4 x4[]; };
layout(set = 0, binding = 2, std430) readonly buffer weight_buffer { T w[]; };
layout(set = 0, binding = 2, std430) readonly buffer weight_vector_buffer { T4 w4[]; };
layout(set = 0, binding = 3, std430) readonly buffer bias_buffer { T bias[]; };
layout(set = 0, binding = 3, std430) readonly buffer bias_vector_buffer { T4 bias4[]; };
layout(set = 0, binding = 4, std430) readonly buffer residual_buffer { T residual[]; };
layout(set = 0, binding = 4, std430) readonly buffer residual_vector_buffer { T4 residual4[]; };
layout(set = 0, binding = 5, std430) writeonly buffer output_buffer { T y[]; };
layout(set = 0, binding = 5, std430) writeonly buffer output_vector_buffer { T4 y4[]; };

// Elements as they are in memory: to convert them would be to wait for them, and takes registers.
T4 read_input(uint at) {
  return VECTORS ? x4[at / 4] : T4(x[at], 0, 0, 0);
}

T4 read_weight(uint filter_index, uint tap) {
  if (VECTORS && TAPS_FIRST)
    return w4[(tap * filters + filter_index) / 4];
  if (!VECTORS)
    return T4(w[TAPS_FIRST ? tap * filters + filter_index : filter_index * (kernel_d * KERNEL_H * KERNEL_W) + tap], 0,
        0, 0);
  T4 e;
  [[unroll]] for (uint i = 0; i < 4; ++i)
    e[i] = w[(filter_index + i) * (kernel_d * KERNEL_H * KERNEL_W) + tap];
  return e;
}

void write(uint at, vec4 own_bias, vec4 sum) {
  if (HAS_BIAS)
    sum += own_bias;
  if (HAS_RESIDUAL)
    sum += VECTORS ? vec4(residual4[at / 4]) : vec4(float(residual[at]));
  if (!VECTORS) {
    y[at] = T(activate(ACTIVATION, sum.x, act_alpha, act_beta));
    return;
  }
  [[unroll]] for (uint i = 0; i < 4; ++i)
    sum[i] = activate(ACTIVATION, sum[i], act_alpha, act_beta);
  y4[at / 4] = T4(sum);
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

  // Asked for before anything is waited for.
  const vec4 own_bias = !HAS_BIAS ? vec4(0.0) : VECTORS ? vec4(bias4[f / 4]) : vec4(float(bias[f]));
  vec4 sums[PIXELS];
  [[unroll]] for (uint p = 0; p < PIXELS; ++p)
    sums[p] = vec4(0.0);
  for (uint kd = 0; kd < kernel_d; ++kd) {
    const uint d = uint(start.x + int(kd) * dilation.x);
    [[unroll]] for (uint first_row = 0; first_row < KERNEL_H; first_row += ROWS) {
      // Everything is asked for before anything is used, without a branch: beyond the input, what is at its end.
      T4 values[ROWS * SPAN], taps[ROWS * KERNEL_W];
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const uint h = uint(start.y + int(first_row + r) * dilation.y);
        const uint line = base + (min(d, in_size.x - 1) * in_size.y + min(h, in_size.y - 1)) * in_size.z * in_pixel;
        [[unroll]] for (uint i = 0; i < SPAN; ++i) {
          const uint at = uint(start.z + int(i) * dilation.z);
          const T4 value = read_input(line + min(at, in_size.z - 1) * in_pixel);
          values[r * SPAN + i] = d < in_size.x && h < in_size.y && at < in_size.z ? value : T4(0);
        }
        [[unroll]] for (uint kw = 0; kw < KERNEL_W; ++kw)
          taps[r * KERNEL_W + kw] = read_weight(f, (kd * KERNEL_H + first_row + r) * KERNEL_W + kw);
      }
      [[unroll]] for (uint r = 0; r < ROWS; ++r)
        [[unroll]] for (uint i = 0; i < SPAN; ++i)
          [[unroll]] for (uint p = 0; p < PIXELS; ++p)
            if (i >= p * STRIDE_W && i - p * STRIDE_W < KERNEL_W)
              sums[p] = fma(vec4(values[r * SPAN + i]), vec4(taps[r * KERNEL_W + i - p * STRIDE_W]), sums[p]);
    }
  }
  const uint to = out_first + image * out_image + f * out_channel;
  [[unroll]] for (uint p = 0; p < PIXELS; ++p)
    if (first + p < out_size.w)
      write(to + (row * out_size.w + first + p) * out_pixel, own_bias, sums[p]);
}
