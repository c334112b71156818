#version 450
// InstanceNormalization and GroupNormalization of channels-last operands: act((x − mean) / √(variance + epsilon) ·
// scale + bias) with the statistics of a slice, which is a group of channels of one image.
//
// A workgroup has some pixels of an image and, of these, BLOCK vectors of channels, which are whole groups. So
// neighbouring invocations read neighbouring vectors, whatever the groups are, and each keeps to its channels. If an
// image is one part, one launch does all; else the first stores mean and squared deviations of every part of a slice,
// and the second merges those of its slices (Chan, Golub and LeVeque). All means are those of differences from the
// slice's first element: sums keep their digits if the mean is far from 0.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "activation.glsl"
#include "parameters/group_norm.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256; // a multiple of BLOCK
layout(constant_id = 1) const uint BLOCK = 8;     // vectors of a pixel
layout(constant_id = 2) const uint SLICE = 1;     // of these, a slice's
layout(constant_id = 3) const uint PHASE = normalization_all;
layout(constant_id = 6) const uint ACTIVATION = scalar_same;

layout(set = 0, binding = 3, std430) readonly buffer scales { T scale[]; };
layout(set = 0, binding = 4, std430) readonly buffer biases { T bias[]; };
layout(set = 0, binding = 5, std430) buffer statistics { vec2 part_moments[]; }; // mean, sum of squared deviations

/// Invocations that share a slice.
const uint MEMBERS = THREADS / BLOCK * SLICE;
const uint lanes = THREADS;
uint lane;

#define OWN_ROWS
#define VECTOR_AT(k) (row_start + ((k) - lane) / BLOCK * channels)
#include "row.glsl"

shared float sums[THREADS]; // of a slice's members one after the other

uint member, slot; // of this invocation in its slice and in `sums`

/// Returns the sum of x over the members of the slice.
float slice_sum(float x) {
  barrier(); // the last sum has been read
  sums[slot] = x;
  for (uint count = MEMBERS; count > 1;) {
    const uint next = (count + 3) / 4;
    barrier();
    if (member < next) {
      float sum = sums[slot];
      [[unroll]] for (uint i = 1; i < 4; ++i)
        if (member + i * next < count)
          sum += sums[slot + i * next];
      sums[slot] = sum;
    }
    count = next;
  }
  barrier();
  return sums[slot - member];
}

uint pixels_of(uint part) {
  return min(per_part, pixels - part * per_part);
}

/// Mean and squared deviations of a slice from those of its parts, which begin at element `first` of part_moments.
vec2 merged_moments(uint first) {
  const vec2 own = member < parts ? part_moments[first + member] : vec2(0);
  float mean = 0.0, square = 0.0;
  for (uint p = member; p < parts; p += MEMBERS)
    mean += (p == member ? own.x : part_moments[first + p].x) * (float(pixels_of(p)) / float(pixels));
  mean = slice_sum(mean);
  for (uint p = member; p < parts; p += MEMBERS) {
    const vec2 m = p == member ? own : part_moments[first + p];
    square += m.y + float(pixels_of(p) * SLICE * WIDTH) * (m.x - mean) * (m.x - mean);
  }
  return vec2(mean, slice_sum(square));
}

/// The same from the kept vectors, which have `count` elements of the slice.
vec2 kept_moments(float origin, uint count) {
  float mean = 0.0, square = 0.0;
  EACH_VECTOR(false, EACH_ELEMENT mean += v[e] - origin;)
  mean = slice_sum(mean) / float(count);
  EACH_VECTOR(false, EACH_ELEMENT {
    const float away = v[e] - origin - mean;
    square += away * away;
  })
  return vec2(mean, slice_sum(square));
}

void normalize(uint channel, float origin, vec2 moments) {
  const float factor = 1.0 / sqrt(moments.y / (float(pixels) * float(SLICE * WIDTH)) + epsilon);
  vec4 by, plus;
  EACH_ELEMENT {
    const uint at = channels_each == 1 ? channel + e : (channel + e) / channels_each;
    by[e] = factor * float(scale[at]);
    plus[e] = float(bias[at]);
  }
  EACH_VECTOR(false, EACH_ELEMENT v[e] = activate(ACTIVATION, (v[e] - origin - moments.x) * by[e] + plus[e], act_alpha,
      act_beta);
  store_vector(k, v);)
}

void main() {
  const uint blocks = channels / (BLOCK * WIDTH), group = flat_group();
  const uint part = group % parts, block = group / parts % blocks, image = group / parts / blocks;
  if (image >= images)
    return;
  lane = gl_LocalInvocationID.x;
  const uint vector = lane % BLOCK, pixel = lane / BLOCK, slice = vector / SLICE;
  member = pixel * SLICE + vector - slice * SLICE;
  slot = slice * MEMBERS + member;
  const uint channel = (block * BLOCK + vector) * WIDTH, image_start = image * pixels * channels;
  keep_row(image_start + (part * per_part + pixel) * channels + channel, pixels_of(part) * BLOCK);
  const float origin = float(x[image_start + (block * BLOCK + slice * SLICE) * WIDTH]);
  // Slices of all images are in the order of their channels.
  const uint slice_parts = (image * (channels / (SLICE * WIDTH)) + block * (BLOCK / SLICE) + slice) * parts;
  if (PHASE == normalization_result) {
    normalize(channel, origin, merged_moments(slice_parts));
    return;
  }
  const vec2 moments = kept_moments(origin, pixels_of(part) * SLICE * WIDTH);
  if (PHASE == normalization_all)
    normalize(channel, origin, moments);
  else if (member == 0)
    part_moments[slice_parts + part] = moments;
}
