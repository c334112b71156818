#version 450
// DeformConv in two launches: what every tap meets at its moved place, interpolated, as scratch [n, channel, tap,
// output place]; then the products with the filters, an invocation an element of y. Constants: 0 which launch; 1 flags
// (parameters/deform_conv.h).
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/deform_conv.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint phase = deform_samples;
layout(constant_id = 1) const uint flags = 0u;

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) readonly buffer filter_buffer { T w[]; };
layout(set = 0, binding = 3, std430) readonly buffer moves { T offset[]; };
layout(set = 0, binding = 4, std430) readonly buffer sums { T bias[]; };
layout(set = 0, binding = 5, std430) readonly buffer factors { T mask[]; };
layout(set = 0, binding = 6, std430) writeonly buffer target { T y[]; };
layout(set = 0, binding = 7, std430) buffer scratch { float samples[]; };

float element_at(uint plane, int row, int column) {
  return row >= 0 && row < int(size.x) && column >= 0 && column < int(size.y)
      ? float(x[plane + uint(row) * size.y + uint(column)]) : 0.0;
}

float interpolated(uint plane, float row, float column) {
  if (!(row > -1.0 && row < float(size.x) && column > -1.0 && column < float(size.y)))
    return 0.0;
  const float top = floor(row), left = floor(column), dy = row - top, dx = column - left;
  const int i = int(top), j = int(left);
  return (1.0 - dy) * ((1.0 - dx) * element_at(plane, i, j) + dx * element_at(plane, i, j + 1)) +
         dy * ((1.0 - dx) * element_at(plane, i + 1, j) + dx * element_at(plane, i + 1, j + 1));
}

void sample_tap(uint index, uint area) {
  const uint o = index % area, t = index / area % taps, channel = index / (area * taps) % channels,
      n = index / (area * taps * channels);
  const uint groups = channels / offset_channels, at = (n * groups + channel / offset_channels) * taps + t;
  const int row = int(o / size.w * step.x) - pad.x + int(t / kernel_columns * step.z);
  const int column = int(o % size.w * step.y) - pad.y + int(t % kernel_columns * step.w);
  const uint moved = 2u * at * area + o;
  const float value = interpolated((n * channels + channel) * size.x * size.y, float(row) + float(offset[moved]),
                                   float(column) + float(offset[moved + area]));
  samples[index] = (flags & deform_mask) != 0u ? value * float(mask[at * area + o]) : value;
}

void multiply(uint index, uint area) {
  const uint o = index % area, m = index / area % filters, n = index / (area * filters);
  const uint first = (n * channels * taps + m / group_filters * depth) * area + o;
  float sum = (flags & deform_bias) != 0u ? float(bias[m]) : 0.0;
  for (uint i = 0u; i < depth; ++i)
    sum += float(w[m * depth + i]) * samples[first + i * area];
  y[index] = T(sum);
}

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x, area = size.z * size.w;
  if (index >= count)
    return;
  if (phase == deform_samples)
    sample_tap(index, area);
  else
    multiply(index, area);
}
