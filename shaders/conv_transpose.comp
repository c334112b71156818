#version 450
// Transposed convolution, gathered: an invocation computes one element of the output, in any layout.
//
// Output position o takes input i through tap t where i · stride = o + pad − t · dilation. Weights are
// [channels][filters / group][taps], as ONNX has them.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "activation.glsl"
#include "parameters/product.h"
#include "parameters/conv_transpose.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint FLAGS = 0;
layout(constant_id = 1) const uint ACTIVATION = 0;

const bool HAS_BIAS = (FLAGS & product_bias) != 0u;
const bool HAS_RESIDUAL = (FLAGS & product_residual) != 0u;

layout(set = 0, binding = 1, std430) readonly buffer input_buffer { T x[]; };
layout(set = 0, binding = 2, std430) readonly buffer weight_buffer { T w[]; };
layout(set = 0, binding = 3, std430) readonly buffer bias_buffer { T bias[]; };
layout(set = 0, binding = 4, std430) readonly buffer residual_buffer { T residual[]; };
layout(set = 0, binding = 5, std430) writeonly buffer output_buffer { T y[]; };

/// The input position that reaches `at` (output + pad − tap · dilation) along one axis; −1 if none does.
int source(int at, int step, uint size) {
  if (at < 0)
    return -1;
  const int i = at / step;
  return i * step == at && i < int(size) ? i : -1;
}

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint all_filters = filters * groups, pixels = out_size.x * out_size.y * out_size.z;
  uint filter_index, pixel, image;
  if (channels_first != 0) {
    filter_index = index / pixels;
    pixel = index - filter_index * pixels;
    image = filter_index / all_filters;
    filter_index -= image * all_filters;
  } else {
    pixel = index / all_filters;
    filter_index = index - pixel * all_filters;
    image = pixel / pixels;
    pixel -= image * pixels;
  }
  const uint row = pixel / out_size.z, od = row / out_size.y;
  const ivec3 at = ivec3(od, row - od * out_size.y, pixel - row * out_size.z) + pad.xyz;
  const uint group = filter_index / filters, taps = kernel.x * kernel.y * kernel.z;

  float sum = 0.0;
  for (uint tap = 0; tap < taps; ++tap) {
    const uint line = tap / kernel.z, kd = line / kernel.y;
    const ivec3 offset = ivec3(kd, line - kd * kernel.y, tap - line * kernel.z) * dilation.xyz;
    const int d = source(at.x - offset.x, stride.x, in_size.x), h = source(at.y - offset.y, stride.y, in_size.y),
              v = source(at.z - offset.z, stride.z, in_size.z);
    if (d < 0 || h < 0 || v < 0)
      continue;
    const uint from = image * in_image + group * channels * in_channel +
                      ((uint(d) * in_size.y + uint(h)) * in_size.z + uint(v)) * in_pixel;
    const uint weight = (group * channels * filters + filter_index % filters) * taps + tap;
    for (uint c = 0; c < channels; ++c)
      sum = fma(float(x[from + c * in_channel]), float(w[weight + c * filters * taps]), sum);
  }
  const uint to = image * out_image + filter_index * out_channel + pixel * out_pixel;
  if (HAS_BIAS)
    sum += float(bias[filter_index]);
  if (HAS_RESIDUAL)
    sum += float(residual[to]);
  y[to] = T(activate(ACTIVATION, sum, act_alpha, act_beta));
}
