#version 450
// Which keys count by each row of an attention's mask, so that attention_matrices.comp leaves out the others: where
// those begin and end that count, and those whose mask is 0. A group has a row.
//
// A key does not count if its mask is −32768 or less, and another's is 0 or more: its weight is then below 2^-24 of
// that one's, unless scores are 32,750 apart. Where no mask is 0 or more (all keys of a row may be hidden, by −inf or
// by the lowest number), all keys count.
// Variants: f16
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/mask_ranges.h"

layout(local_size_x = 128) in;
layout(set = 0, binding = 1, std430) readonly buffer mask_buffer { T mask[]; };
// First and last + 1 of the keys that count; the same of those without a mask, last + 1 being 0 if not all between are.
layout(set = 0, binding = 2, std430) writeonly buffer range_buffer { uvec4 ranges[]; };

const float hidden = -32768.0;

shared uint first, end, first_zero, end_zero, zeros, shows;

void main() {
  const uint row = flat_group(), lane = gl_LocalInvocationID.x;
  if (row >= rows)
    return;
  uvec2 firsts = uvec2(keys), ends = uvec2(0);
  uint own_zeros = 0, own_shows = 0;
  for (uint k = lane; k < keys; k += gl_WorkGroupSize.x) {
    const float m = float(mask[row * keys + k]);
    if (!(m <= hidden)) { // a NaN counts
      firsts.x = min(firsts.x, k);
      ends.x = k + 1;
    }
    if (m == 0.0) {
      firsts.y = min(firsts.y, k);
      ends.y = k + 1;
      ++own_zeros;
    }
    if (m >= 0.0)
      own_shows = 1;
  }
  if (lane == 0) {
    first = first_zero = keys;
    end = end_zero = zeros = shows = 0;
  }
  barrier();
  firsts = subgroupMin(firsts);
  ends = subgroupMax(ends);
  own_zeros = subgroupAdd(own_zeros);
  own_shows = subgroupMax(own_shows);
  if (subgroupElect()) {
    atomicMin(first, firsts.x);
    atomicMax(end, ends.x);
    atomicMin(first_zero, firsts.y);
    atomicMax(end_zero, ends.y);
    atomicAdd(zeros, own_zeros);
    atomicMax(shows, own_shows);
  }
  barrier();
  if (lane == 0)
    ranges[row] = uvec4(shows != 0 ? first : 0, shows != 0 ? end : keys, first_zero,
        zeros == end_zero - first_zero ? end_zero : 0);
}
