#version 450
// Attention of one query, and the product of all its heads by a matrix: a decode step's two waves in one. See
// attention_lanes.glsl for the attention.
//
// A group (column block, part) computes ROWS heads that share keys, then what these heads add to COLUMNS columns:
// groups of a part compute the same heads again, which costs less than another wave, since the vectors of the matrix
// that a group multiplies are on their way meanwhile. A column's depths are neighbours, so a part's are a slice of them
// (src/launch/product.hpp packs constants so); a team of TEAM invocations multiplies a slice. Whichever group of a
// column block is the last to have written its sums adds up those of all parts, always in the same order.
//
// Invariants: one batch element, one query, heads of whole vectors; ROWS divides the heads that share keys; TEAM is a
// power of two, at most a subgroup, and divides a slice's vectors.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "attention_lanes.glsl"
#include "parameters/attention_projection.h"

layout(constant_id = 8) const uint TEAM = 8;
layout(constant_id = 9) const uint TEAM_COLUMNS = 1;
layout(constant_id = 10) const uint PARTS = 1;      // groups of ROWS heads that all heads make
layout(constant_id = 11) const uint ALL_COLUMNS = 1; // of the matrix
layout(constant_id = 12) const uint PITCH = 8;      // vectors of a column of it
layout(constant_id = 13) const uint ENDS = 0;       // what is added to a sum

layout(set = 0, binding = 5, std430) writeonly buffer output_buffer { T y[]; };
layout(set = 0, binding = 8, std430) coherent buffer partial_buffer { float partial[]; }; // [parts][columns]
layout(set = 0, binding = 9, std430) coherent buffer counter_buffer { uint arrived[]; };  // by column block
layout(set = 0, binding = 10, std430) readonly buffer weight_buffer { VECTOR weights[]; };
layout(set = 0, binding = 11, std430) readonly buffer bias_buffer { T bias[]; };
layout(set = 0, binding = 12, std430) readonly buffer residual_buffer { T residual[]; };
#include "last_group.glsl"

const uint SLICE = ROWS * VALUE_VECTORS;    // vectors of a part of a column
const uint TEAM_VECTORS = SLICE / TEAM;     // of them that an invocation has
const uint TEAMS = THREADS / TEAM, COLUMNS = TEAMS * TEAM_COLUMNS;
shared float attended[SLICE * WIDTH];       // the rows, one after the other
VECTOR weights_ahead[TEAM_COLUMNS * TEAM_VECTORS];

/// Starts to read what a member of a team multiplies. Beyond the last column it is that one's.
void ask_for_weights(uint column, uint part, uint member) {
  const uint first = part * SLICE + member;
  [[unroll]] for (uint j = 0; j < TEAM_COLUMNS; ++j)
    [[unroll]] for (uint i = 0; i < TEAM_VECTORS; ++i)
      weights_ahead[j * TEAM_VECTORS + i] = weights[min(column + j, ALL_COLUMNS - 1) * PITCH + first + i * TEAM];
}

/// The sum over a team of what its invocations have.
float team_sum(float sum) {
  for (uint reach = 1; reach < TEAM; reach *= 2)
    sum += subgroupShuffleXor(sum, reach);
  return sum;
}

void main() {
  const uint id = gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID, member = id % TEAM; // teams are within subgroups
  const uint part = gl_WorkGroupID.z, block = flat_group() * COLUMNS;
  if (block >= ALL_COLUMNS)
    return;
  const uint column = block + id / TEAM * TEAM_COLUMNS, blocks = sharing / ROWS, head = part / blocks;
  const uint stop = find_rows(0, head, (part - head * blocks) * ROWS, sharing);
  if (stop > 0)
    fetch_block(0, stop);
  ask_for_queries();
  ask_for_weights(column, part, member); // last, because they are many bytes and waited for last
  attend(0, stop);
  barrier();
  for (uint i = gl_SubgroupID; i < ROWS * ELEMENT_BLOCKS; i += SUBGROUPS) {
    const uint r = i / ELEMENT_BLOCKS, element = i % ELEMENT_BLOCKS * SUBGROUP + gl_SubgroupInvocationID;
    const vec3 joined = join_subgroups(r, min(element, VALUES - 1));
    if (element < VALUES)
      attended[r * VALUES + element] = quotient(joined.y, joined.z);
  }
  barrier();

  float sums[TEAM_COLUMNS];
  [[unroll]] for (uint j = 0; j < TEAM_COLUMNS; ++j)
    sums[j] = 0.0;
  [[unroll]] for (uint i = 0; i < TEAM_VECTORS; ++i)
    [[unroll]] for (uint j = 0; j < TEAM_COLUMNS; ++j) {
      float e[WIDTH];
      unpack(weights_ahead[j * TEAM_VECTORS + i], e);
      [[unroll]] for (uint w = 0; w < WIDTH; ++w)
        sums[j] = fma(attended[(member + i * TEAM) * WIDTH + w], e[w], sums[j]);
    }
  [[unroll]] for (uint j = 0; j < TEAM_COLUMNS; ++j) {
    const float sum = team_sum(sums[j]);
    if (member == j % TEAM && column + j < ALL_COLUMNS)
      partial[part * ALL_COLUMNS + column + j] = sum;
  }
  if (!is_last_group())
    return;
  for (uint n = block + id; n < min(block + COLUMNS, ALL_COLUMNS); n += THREADS) {
    float of_parts[PARTS];
    [[unroll]] for (uint p = 0; p < PARTS; ++p)
      of_parts[p] = partial[p * ALL_COLUMNS + n];
    float sum = of_parts[0];
    [[unroll]] for (uint p = 1; p < PARTS; ++p)
      sum += of_parts[p];
    if ((ENDS & attention_projection_bias) != 0u)
      sum += float(bias[n]);
    if ((ENDS & attention_projection_residual) != 0u)
      sum += float(residual[n]);
    y[n] = T(sum);
  }
  forget_groups();
}
