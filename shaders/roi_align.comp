#version 450
// RoiAlign: the mean or the largest of samples in each bin of a region; src/ops/onnx/roi_align.cpp has the formulas.
// One invocation an element. What the CPU refuses, a region of no image or one that needs too many samples, is NaN.
// Constants: 0 the largest, not the mean; 1 half-pixel coordinates.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "float_math.glsl"
#include "parameters/roi_align.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const bool is_max = false;
layout(constant_id = 1) const bool half_pixel = false;

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) readonly buffer regions { T rois[]; };
layout(set = 0, binding = 3, std430) readonly buffer numbers { uvec2 image_of[]; };
layout(set = 0, binding = 4, std430) writeonly buffer target { T y[]; };

/// The bins of a region along one axis.
struct roi_axis {
  float begin, bin;
  uint samples;
  bool is_good;
};

roi_axis axis_of(float first, float last, uint bins) {
  precise const float shift = half_pixel ? 0.5 : 0.0, begin = first * scale - shift;
  precise float extent = last * scale - shift - begin;
  if (!half_pixel)
    extent = max(extent, 1.0);
  roi_axis a;
  a.begin = begin;
  a.bin = exact_quotient(extent, float(bins));
  const float wanted = ratio > 0u ? float(ratio) : ceil(a.bin);
  a.is_good = wanted <= float(roi_most_samples);
  a.samples = a.is_good ? uint(max(wanted, 0.0)) : 0u;
  return a;
}

float place(roi_axis a, uint b, uint s) {
  return a.begin + float(b) * a.bin + (float(s) + 0.5) * a.bin / float(a.samples);
}

/// The neighbours of a place along an axis of `size` elements, and how much the second counts.
struct neighbours {
  uint low, high;
  float rest;
};

neighbours split(float v, uint size) {
  v = max(v, 0.0);
  neighbours n;
  n.low = min(uint(v), size - 1u);
  n.high = min(n.low + 1u, size - 1u);
  n.rest = n.high == n.low ? 0.0 : v - float(n.low);
  return n;
}

/// Four neighbours, each times its weight; zero outside the image.
vec4 parts_at(uint plane, float row, float column) {
  if (!(row >= -1.0 && row <= float(height) && column >= -1.0 && column <= float(width)))
    return vec4(0.0);
  const neighbours r = split(row, height), c = split(column, width);
  const vec4 elements = vec4(float(x[plane + r.low * width + c.low]), float(x[plane + r.low * width + c.high]),
                             float(x[plane + r.high * width + c.low]), float(x[plane + r.high * width + c.high]));
  return elements * vec4((1.0 - r.rest) * (1.0 - c.rest), (1.0 - r.rest) * c.rest, r.rest * (1.0 - c.rest),
      r.rest * c.rest);
}

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint column = index % bins_wide, row = index / bins_wide % bins_high;
  const uint channel = index / (bins_wide * bins_high) % channels, region = index / (bins_wide * bins_high * channels);
  const roi_axis rows = axis_of(float(rois[4u * region + 1u]), float(rois[4u * region + 3u]), bins_high);
  const roi_axis columns = axis_of(float(rois[4u * region]), float(rois[4u * region + 2u]), bins_wide);
  const uvec2 image = image_of[region];
  if (image.y != 0u || image.x >= images || !rows.is_good || !columns.is_good) {
    y[index] = T(nan_value);
    return;
  }
  const uint plane = (image.x * channels + channel) * height * width, samples = rows.samples * columns.samples;
  float result = 0.0;
  for (uint i = 0u; i < rows.samples; ++i)
    for (uint j = 0u; j < columns.samples; ++j) {
      const vec4 part = parts_at(plane, place(rows, row, i), place(columns, column, j));
      const float most = max(max(part.x, part.y), max(part.z, part.w));
      if (is_max)
        result = i == 0u && j == 0u ? most : max(result, most);
      else
        result += part.x + part.y + part.z + part.w;
    }
  y[index] = T(is_max ? result : result / float(max(samples, 1u)));
}
