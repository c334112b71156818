#version 450
// GridSample: y[n, c, o] is x[n, c] at the place that grid[n, o] names; src/ops/onnx/grid_sample.cpp has the formulas.
// One invocation an element. Constants: 0 the mode, 1 what is outside (parameters/grid_sample.h), 2 whether ±1 are the
// middles of the outermost elements.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "float_math.glsl"
#include "parameters/grid_sample.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint mode = grid_linear;
layout(constant_id = 1) const uint padding = grid_zeros;
layout(constant_id = 2) const bool align_corners = false;

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) readonly buffer named { T grid[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { T y[]; };

const uint taps = mode == grid_nearest ? 1u : (mode == grid_linear ? 2u : 4u);

/// What a place reads along one axis; an index of −1 reads zero.
struct axis_taps {
  int index[4];
  float weight[4];
};

/// Mirrors a place at both ends of a range as often as it takes.
float reflected(float place, float low, float high) {
  const float range = high - low;
  if (range <= 0.0)
    return low;
  const float away = abs(place - low), off = away - 2.0 * range * floor(away / (2.0 * range));
  return low + (off > range ? 2.0 * range - off : off);
}

int inside(int i, int size) {
  if (i >= 0 && i < size)
    return i;
  if (padding == grid_zeros)
    return -1;
  if (padding == grid_reflection) {
    const int period = 2 * (align_corners ? size - 1 : size);
    if (period == 0)
      return 0;
    const int off = (i < 0 ? (align_corners ? -i : -i - 1) : i) % period;
    i = off < size ? off : (align_corners ? period - off : period - 1 - off);
  }
  return clamp(i, 0, size - 1);
}

float outer(float d) { return ((-0.75 * d + 3.75) * d - 6.0) * d + 3.0; }
float inner(float d) { return (1.25 * d - 2.25) * d * d + 1.0; }

axis_taps taps_at(float coordinate, int size) {
  const float extent = float(size), half_step = align_corners ? 0.0 : 0.5, low = -half_step,
      high = extent - 1.0 + half_step;
  float place = align_corners ? (coordinate + 1.0) / 2.0 * (extent - 1.0) : ((coordinate + 1.0) * extent - 1.0) / 2.0;
  place = exact_isnan(place) ? low - 2.0 * extent - 4.0 : clamp(place, -1e9, 1e9);
  if (mode == grid_nearest)
    place = exact_round(place);
  if (place < low || place > high)
    place = padding == grid_border ? clamp(place, 0.0, extent - 1.0)
        : (padding == grid_reflection ? reflected(place, low, high) : place);
  axis_taps found;
  if (mode == grid_nearest) {
    found.index[0] = inside(int(floor(place + 0.5)), size);
    found.weight[0] = 1.0;
    return found;
  }
  const float first = floor(place), t = place - first;
  if (mode == grid_linear) {
    found.weight[0] = 1.0 - t;
    found.weight[1] = t;
  } else {
    found.weight[0] = outer(t + 1.0);
    found.weight[1] = inner(t);
    found.weight[2] = inner(1.0 - t);
    found.weight[3] = outer(2.0 - t);
  }
  [[unroll]] for (uint i = 0u; i < taps; ++i)
    found.index[i] = inside(int(first) + int(i) - (mode == grid_cubic ? 1 : 0), size);
  return found;
}

/// The taps along axis 0 (depth), 1 or 2 of a place, whose coordinates name the last axis first.
axis_taps axis_of(uint place, uint axis) {
  const uint at = 2u - axis;
  if (at < axes)
    return taps_at(float(grid[place * axes + at]), int(size[axis]));
  axis_taps single;
  single.index[0] = 0;
  single.weight[0] = 1.0;
  return single;
}

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint plane = index / places, image = plane / channels, place = image * places + index - plane * places;
  const axis_taps d = axis_of(place, 0u), h = axis_of(place, 1u), w = axis_of(place, 2u);
  const uint base = plane * size.x * size.y * size.z;
  float sum = 0.0;
  for (uint i = 0u; i < (axes > 2u ? taps : 1u); ++i)
    for (uint j = 0u; j < (axes > 1u ? taps : 1u); ++j)
      for (uint k = 0u; k < taps; ++k)
        if (d.index[i] >= 0 && h.index[j] >= 0 && w.index[k] >= 0)
          sum += d.weight[i] * h.weight[j] * w.weight[k] *
                 float(x[base + (uint(d.index[i]) * size.y + uint(h.index[j])) * size.z + uint(w.index[k])]);
  y[index] = T(sum);
}
