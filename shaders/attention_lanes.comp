#version 450
// Attention of few queries, bound by reading K and V once: a group computes ROWS rows of Y whose queries share keys,
// over all of them or over a split; see attention_lanes.glsl (attention_row.comp: without shuffles; attention.comp:
// many rows).
//
// Splits of the keys (TYPE_split variants) are joined by whichever group is the last to have written what it has, as
// attention_join.comp does it.
//
// Variants: f32 f16 f32_split f16_split
#if defined(TROUPE_f32_split)
#define TROUPE_f32 1
#define SPLIT
#elif defined(TROUPE_f16_split)
#define TROUPE_f16 1
#define SPLIT
#endif
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "attention_lanes.glsl"

layout(set = 0, binding = 5, std430) writeonly buffer output_buffer { T y[]; };
#ifdef SPLIT
layout(set = 0, binding = 8, std430) coherent buffer partial_buffer { float partial[]; }; // [splits][rows][2 + width]
layout(set = 0, binding = 9, std430) coherent buffer counter_buffer { uint arrived[]; };  // by group of all splits

#include "attention_splits.glsl"
#include "last_group.glsl"
#endif

/// Writes an element of Y.
void write_result(uint b, uint kv_head, uint row, uint element, float result) {
  const uint share = row / queries, head = kv_head * sharing + share, s = row - share * queries;
  y[b * y_steps.x + head * y_steps.y + s * y_steps.z + element] = T(result);
}

void main() {
  const uint head_rows = sharing * queries, blocks = (head_rows + ROWS - 1) / ROWS;
  const uint head_index = flat_group() / blocks, row0 = (flat_group() - head_index * blocks) * ROWS;
  if (head_index * head_rows >= rows)
    return;
  const uint kv_heads = heads / sharing, b = head_index / kv_heads, head = head_index - b * kv_heads;
  const uint last = find_rows(b, head, row0, head_rows);
#ifdef SPLIT
  const uint begin = gl_WorkGroupID.z * split_keys, stop = min(last, begin + split_keys);
#else
  const uint begin = 0, stop = last;
#endif
  if (begin < stop)
    fetch_block(begin, stop); // before the queries, which are waited for
  ask_for_queries();
  attend(begin, stop);
  barrier();

  for (uint i = gl_SubgroupID; i < ROWS * ELEMENT_BLOCKS; i += SUBGROUPS) {
    const uint r = i / ELEMENT_BLOCKS, element = i % ELEMENT_BLOCKS * SUBGROUP + gl_SubgroupInvocationID,
        row = row0 + r;
    const vec3 joined = join_subgroups(r, min(element, VALUES - 1));
    if (row < head_rows && element < VALUES) {
#ifdef SPLIT
      const uint to = (gl_WorkGroupID.z * rows + head_index * head_rows + row) * PART;
      if (element == 0) {
        partial[to] = joined.x;
        partial[to + 1] = joined.y;
      }
      partial[to + 2 + element] = joined.z;
#else
      write_result(b, head, row, element, quotient(joined.y, joined.z));
#endif
    }
  }
#ifdef SPLIT
  if (!is_last_group())
    return;
  const uint results = min(ROWS, head_rows - row0) * VALUES;
  for (uint i = gl_LocalInvocationID.x; i < results; i += THREADS) {
    const uint r = i / VALUES, element = i - r * VALUES, row = row0 + r;
    const vec2 joined = join_splits(head_index * head_rows + row, element, gl_NumWorkGroups.z, rows, PART);
    write_result(b, head, row, element, quotient(joined.x, joined.y));
  }
  forget_groups();
#endif
}
