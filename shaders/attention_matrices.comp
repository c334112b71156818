#version 450
// Softmax attention in one pass over the keys, as attention.comp, by matrices of subgroups: float16, sums in float.
//
// A subgroup computes 16 queries of one head against its part of the keys, tile by tile: scores = Q · Kᵀ; each row's
// largest score so far, `top`, in units of log2(e); weights = 2^(scores − top); `sums` and the output `o` shrink by
// 2^(old top − top) before they grow (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). A
// row's `top` stands in each of the row's columns, and `sums` are by column until the end. A group has BLOCKS subgroups
// of different queries, a team, for each of PARTS parts of the keys. A team shares its tile of keys and values in
// shared memory; the parts' outputs are joined at the end, weighed by 2^(own top − largest top). Queries after the last
// one are zeros and are not written; keys after the last one weigh nothing.
//
// Differs from attention.comp: weights are rounded to float16 before they meet V; a masked key's V is multiplied by
// zero, so what calls for that never to happen does not come here; the scale is above zero. Matrices are single
// variables, made by macros: see gemm_cooperative.glsl. The width of a head and KEYS are set by the variant.
// Variants: f16_32x64 f16_32x32 f16_64x64 f16_64x32 f16_128x32
// Compiled twice: see group_matrix.glsl.
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#define TROUPE_f16
#include "types.glsl"
#include "common.glsl"
#include "subgroup_matrix.glsl"
#include "parameters/attention.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128; // 32 · BLOCKS · PARTS
layout(constant_id = 1) const uint BLOCKS = 4;
layout(constant_id = 2) const uint PARTS = 1;
layout(constant_id = 3) const uint FLAGS = 0;
const bool HAS_MASK = (FLAGS & attention_mask) != 0u, ROW_MASK = (FLAGS & attention_row_mask) != 0u;
const bool CAUSAL = (FLAGS & attention_causal) != 0u, RANGES = (FLAGS & attention_ranges) != 0u;
const bool BATCHED = (FLAGS & attention_batched) != 0u, SHARES = (FLAGS & attention_shares) != 0u;

// EACH_KEYS(X), EACH_COLUMN(X): X of every 16 keys of a tile and of every 16 elements of a head; COLUMN_OF(X, i): of
// the latter, for keys i.
#if defined(TROUPE_f16_32x64) || defined(TROUPE_f16_64x64)
const uint KEYS = 64;
#define EACH_KEYS(X) X(0) X(1) X(2) X(3)
#define HALF_THE_KEYS(X) X(0) X(1)
#else
const uint KEYS = 32;
#define EACH_KEYS(X) X(0) X(1)
#define HALF_THE_KEYS(X) X(0)
#endif
#if defined(TROUPE_f16_32x64) || defined(TROUPE_f16_32x32)
const uint WIDTH = 32;
#define EACH_COLUMN(X) X(0) X(1)
#define COLUMN_OF(X, i) X(0, i) X(1, i)
#elif defined(TROUPE_f16_128x32)
const uint WIDTH = 128;
#define EACH_COLUMN(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define COLUMN_OF(X, i) X(0, i) X(1, i) X(2, i) X(3, i) X(4, i) X(5, i) X(6, i) X(7, i)
#else
const uint WIDTH = 64;
#define EACH_COLUMN(X) X(0) X(1) X(2) X(3)
#define COLUMN_OF(X, i) X(0, i) X(1, i) X(2, i) X(3, i)
#endif

layout(set = 0, binding = 1, std430) readonly buffer query_buffer { uvec4 q[]; };
layout(set = 0, binding = 2, std430) readonly buffer key_buffer { uvec4 k[]; };
layout(set = 0, binding = 3, std430) readonly buffer value_buffer { uvec4 v[]; };
layout(set = 0, binding = 4, std430) readonly buffer mask_buffer { float16_t mask[]; };
layout(set = 0, binding = 5, std430) buffer output_buffer { uvec4 y[]; };
layout(set = 0, binding = 6, std430) readonly buffer range_buffer { uvec4 ranges[]; }; // of rows of the mask

const uint ROWS = 16 * BLOCKS;
const uint TEAM = 32 * BLOCKS;  // invocations
const uint VECTORS = WIDTH / 8; // of a row
const uint PITCH = VECTORS + 1; // in shared memory, whose banks the rows of a matrix then share evenly
// vectors of an invocation
const uint SLOTS = KEYS * VECTORS / TEAM, ROW_SLOTS = (ROWS * VECTORS + THREADS - 1) / THREADS;
// keys, then values, of each part
const uint TILE = KEYS * PITCH, BUFFER = PARTS * 2 * TILE;
const uint BUFFERS = 2 * BUFFER * 16 <= attention_shared_bytes ? 2 : 1;
const uint SUMS_PITCH = WIDTH / 4 + 1, SUMS_SIZE = PARTS * ROWS * SUMS_PITCH; // rows of `o`, in floats
const uint TILES_SIZE = BUFFERS * BUFFER > SUMS_SIZE ? BUFFERS * BUFFER : SUMS_SIZE;

shared uvec4 tiles[TILES_SIZE];
shared float tile_masks[BUFFERS * PARTS * KEYS]; // of a tile's keys, if all queries have the same
shared float tops[PARTS * ROWS], totals[PARTS * ROWS];
// By the mask: the first key that counts for a query of the group, and the last + 1 for one of each block; the first of
// those that no query of the group masks, and the last + 1.
shared uint first_seen, last_seen[BLOCKS], first_plain, last_plain;

#define LEFT SUBGROUP_MATRIX(TYPE_F16, matrix_lines, matrix_lines, left_use)
#define RIGHT SUBGROUP_MATRIX(TYPE_F16, matrix_lines, matrix_lines, right_use)
#define SUMS SUBGROUP_MATRIX(TYPE_F32, matrix_lines, matrix_lines, sum_use)
#define HALVED SUBGROUP_MATRIX(TYPE_F16, matrix_lines, matrix_lines, sum_use)

spirv_instruction(id = 80) SUMS all_sums(float x);
spirv_instruction(id = 4457) LEFT load_left(spirv_by_reference uvec4 from, uint order, uint pitch, SHARED_OPERANDS);
spirv_instruction(id = 4457) RIGHT load_right(spirv_by_reference uvec4 from, uint order, uint pitch, SHARED_OPERANDS);
spirv_instruction(id = 4458) void store_sums(spirv_by_reference uvec4 to, SUMS what, uint order, uint pitch,
    SHARED_OPERANDS);
spirv_instruction(id = 4459) SUMS multiply_add(LEFT a, RIGHT b, SUMS c);
spirv_instruction(id = 115) HALVED halved(SUMS x);
spirv_instruction(id = 129) SUMS add(SUMS a, SUMS b);
spirv_instruction(id = 133) SUMS times(SUMS a, SUMS b);
#define NV2(capability) extensions = ["SPV_NV_cooperative_matrix2"], capabilities = [capability]
spirv_instruction(NV2(5431), id = 5293) LEFT as_left(HALVED x);
// 1: by rows.
spirv_instruction(NV2(5430), id = 5366) SUMS reduced(SUMS m, spirv_literal uint by, spirv_literal uint f);
spirv_instruction(NV2(5432), id = 5369) SUMS each_masked(SUMS m, spirv_literal uint f, uint first, uint i, uint row,
    uint row_mask, uint masks);
spirv_instruction(NV2(5432), id = 5369) SUMS each_larger(SUMS m, spirv_literal uint f, SUMS other);
spirv_instruction(NV2(5432), id = 5369) SUMS each_top(SUMS m, spirv_literal uint f, SUMS old, float scale);
spirv_instruction(NV2(5432), id = 5369) SUMS each_weight(SUMS m, spirv_literal uint f, SUMS top, float scale);
spirv_instruction(NV2(5432), id = 5369) SUMS each_shrink(SUMS m, spirv_literal uint f, SUMS top);
spirv_instruction(NV2(5432), id = 5369) SUMS each_kept(SUMS m, spirv_literal uint f, uint at);

#ifndef FUNCTION_larger
#define FUNCTION_larger 1u
#define FUNCTION_total 1u
#define FUNCTION_masked 1u
#define FUNCTION_larger_of 1u
#define FUNCTION_grown 1u
#define FUNCTION_weight 1u
#define FUNCTION_shrink 1u
#define FUNCTION_kept_top 1u
#define FUNCTION_kept_total 1u
#endif

const float log2_e = 1.44269504;
const float lowest = -1e30; // below all scores, but not −infinity: the difference of two stays a number

float larger(const in float a, const in float b) { return max(a, b); } // a NaN that it drops makes its own weight NaN
float total(const in float a, const in float b) { return a + b; }
float larger_of(const in uint r, const in uint c, const in float a, const in float b) { return max(a, b); }
float grown(const in uint r, const in uint c, const in float largest, const in float old, const in float factor) {
  return max(largest * factor, old);
}
float weight(const in uint r, const in uint c, const in float score, const in float top, const in float factor) {
  return exp2(fma(score, factor, -top));
}
float shrink(const in uint r, const in uint c, const in float old, const in float top) { return exp2(old - top); }

// Leave in shared memory what stands in each column of a row.
float kept_top(const in uint r, const in uint c, const in float top, const in uint at) {
  if (c == 0)
    tops[at + r] = top;
  return top;
}
float kept_total(const in uint r, const in uint c, const in float sum, const in uint at) {
  if (c == 0)
    totals[at + r] = sum;
  return sum;
}

/// A score, of keys `i` of the tile that begins at key `first`, with its mask, in units of log2(e). `masks`: where the
/// tile's own are.
float masked(const in uint r, const in uint c, const in float score, const in uint first, const in uint i,
             const in uint row, const in uint row_mask, const in uint masks) {
  const float scaled = score * (scale * log2_e);
  if (ROW_MASK && !CAUSAL)
    return scaled + tile_masks[masks + i + c];
  const uint t = first + i + c, s = min(row + r, queries - 1);
  if (t >= keys || (CAUSAL && int(t) > int(s) + causal_offset))
    return -infinity;
  return HAS_MASK ? fma(float(mask[row_mask + s * mask_steps.z + t * mask_steps.w]), log2_e, scaled) : scaled;
}

/// How many keys the queries before `row` see.
uint keys_seen(uint row) { return CAUSAL ? uint(clamp(int(row) + causal_offset, 0, int(keys))) : keys; }

/// Finds the group's keys, where they are known by the rows of the mask, the first of which is number `row_range`.
void find_ranges(uint first_row, uint row_range) {
  const uint r = gl_LocalInvocationID.x;
  if (r == 0) {
    first_seen = last_plain = keys;
    first_plain = 0;
  }
  if (r < BLOCKS)
    last_seen[r] = 0;
  barrier();
  if (r < ROWS && first_row + r < queries) {
    const uvec4 own = ranges[row_range + first_row + r];
    atomicMin(first_seen, own.x);
    atomicMax(last_seen[r / 16], own.y);
    atomicMax(first_plain, own.z);
    atomicMin(last_plain, own.w);
  }
  barrier();
}

/// Row of slot `s` of this invocation among the rows of its team's tile, and among all the group's queries.
uint slot_row(uint s) { return (gl_LocalInvocationID.x % TEAM + s * TEAM) / VECTORS; }
uint query_row(uint s) { return (gl_LocalInvocationID.x + s * THREADS) / VECTORS; }

// This invocation's vectors of the tile that begins at key `first`: from memory to registers, and on to shared memory.
#define LOAD_TILE(first) \
  [[unroll]] for (uint s = 0; s < SLOTS; ++s) { \
    const uint at = (first) + slot_row(s); \
    next_keys[s] = at < keys ? k[k_base + at * k_pitch] : uvec4(0); \
    next_values[s] = at < keys ? v[v_base + at * v_pitch] : uvec4(0); \
  } \
  if (ROW_MASK && lane < KEYS) \
    next_mask = (first) + lane < keys ? float(mask[row_mask + ((first) + lane) * mask_steps.w]) * log2_e : -infinity;
#define STORE_TILE \
  [[unroll]] for (uint s = 0; s < SLOTS; ++s) { \
    tiles[tile + slot_row(s) * PITCH + column] = next_keys[s]; \
    tiles[tile + TILE + slot_row(s) * PITCH + column] = next_values[s]; \
  } \
  if (ROW_MASK && lane < KEYS) \
    tile_masks[masks_of(tile) + lane] = next_mask;
#define masks_of(tile) (tile / (2 * TILE) * KEYS)

#define LOAD_QUERIES(j) const LEFT q##j = load_left(tiles[16 * block * PITCH + 2 * j], by_rows, PITCH, FROM_SHARED);
#define DECLARE(j) SUMS o##j = all_sums(0.0);
#define SCORE_COLUMN(j, i) \
  w##i = multiply_add(q##j, load_right(tiles[tile + 16 * i * PITCH + 2 * j], by_columns, PITCH, FROM_SHARED), w##i);
#define SCORE(i) \
  SUMS w##i = all_sums(0.0); \
  COLUMN_OF(SCORE_COLUMN, i)
#define MASK(i) w##i = each_masked(w##i, FUNCTION_masked, t, 16 * i, row, row_mask, masks_of(tile));
#define LARGEST(i) largest = each_larger(largest, FUNCTION_larger_of, w##i);
#define WEIGH(i) \
  w##i = each_weight(w##i, FUNCTION_weight, top, unit); \
  sums = add(sums, w##i); \
  const LEFT h##i = as_left(halved(w##i));
#define SHRINK(j) o##j = times(o##j, less);
#define ADD_COLUMN(j, i) \
  o##j = multiply_add(h##i, load_right(tiles[tile + TILE + 16 * i * PITCH + 2 * j], by_rows, PITCH, FROM_SHARED), o##j);
#define ADD_VALUES(i) COLUMN_OF(ADD_COLUMN, i)
#define STORE(j) store_sums(tiles[16 * gl_SubgroupID * SUMS_PITCH + 4 * j], o##j, by_rows, SUMS_PITCH, TO_SHARED);

// Scores the `count` keys from key `t` on, which EACH has 16 at a time, and adds up their values.
#define ATTEND(EACH, count) \
  { \
    EACH(SCORE) \
    float unit = factor; \
    const bool masked_here = HAS_MASK && (!RANGES || t < first_plain || t + count > last_plain); \
    if (masked_here || t + count > keys || (CAUSAL && int(t + count) > int(row) + causal_offset + 1)) { \
      EACH(MASK) \
      unit = 1.0; \
    } \
    SUMS largest = w0; \
    EACH(LARGEST) \
    const SUMS next = each_top(reduced(largest, 1u, FUNCTION_larger), FUNCTION_grown, top, unit); \
    const SUMS less = each_shrink(top, FUNCTION_shrink, next); \
    top = next; \
    sums = times(sums, less); \
    EACH(WEIGH) \
    EACH_COLUMN(SHRINK) \
    EACH(ADD_VALUES) \
  }

/// Joins what the parts have left of row `r`, eight elements of it.
uvec4 joined(uint r, uint column) {
  float best = lowest, sum = 0;
  [[unroll]] for (uint p = 0; p < PARTS; ++p)
    best = max(best, tops[p * ROWS + r]);
  vec4 low = vec4(0), high = vec4(0);
  [[unroll]] for (uint p = 0; p < PARTS; ++p) {
    const uint from = (p * ROWS + r) * SUMS_PITCH + 2 * column;
    const float share = PARTS == 1 ? 1.0 : exp2(tops[p * ROWS + r] - best);
    sum = fma(totals[p * ROWS + r], share, sum);
    low += share * uintBitsToFloat(tiles[from]);
    high += share * uintBitsToFloat(tiles[from + 1]);
  }
  low *= 1.0 / sum;
  high *= 1.0 / sum;
  return uvec4(packHalf2x16(low.xy), packHalf2x16(low.zw), packHalf2x16(high.xy), packHalf2x16(high.zw));
}

void main() {
  const float16_t zero = float16_t(0.0); // what a type names stands before the first matrix
  const uint group = flat_group();
  if (group >= groups)
    return;
  // Where later queries see more keys, their groups begin first.
  const uint heads = groups / row_blocks, turn = group / heads;
  const uint head_index = CAUSAL || RANGES ? group - turn * heads : group / row_blocks;
  const uint first_row = (CAUSAL || RANGES ? row_blocks - 1 - turn : group - head_index * row_blocks) * ROWS;
  const uint b = BATCHED ? head_index / (kv_heads * sharing) : 0, head = head_index - b * kv_heads * sharing;
  const uint kv_head = SHARES ? head / sharing : head;
  const uint block = gl_SubgroupID % BLOCKS, part = gl_SubgroupID / BLOCKS, row = first_row + 16 * block;
  const uint lane = gl_LocalInvocationID.x % TEAM, column = gl_LocalInvocationID.x % VECTORS;
  const uint q_base = (q_steps.w + b * q_steps.x + head * q_steps.y) / 8 + column, q_pitch = q_steps.z / 8;
  const uint k_base = (k_steps.w + b * k_steps.x + kv_head * k_steps.y) / 8 + column, k_pitch = k_steps.z / 8;
  const uint v_base = (v_steps.w + b * v_steps.x + kv_head * v_steps.y) / 8 + column, v_pitch = v_steps.z / 8;
  const uint y_base = (b * y_steps.x + head * y_steps.y) / 8 + column, y_pitch = y_steps.z / 8;
  const uint row_mask = b * mask_steps.x + head * mask_steps.y;
  const float factor = scale * log2_e;
  uint first = 0, end = keys_seen(first_row + ROWS), own_end = row < queries ? keys_seen(row + 16) : 0;

  uvec4 own_queries[ROW_SLOTS], next_keys[SLOTS], next_values[SLOTS];
  float next_mask = 0;
  [[unroll]] for (uint s = 0; s < ROW_SLOTS; ++s) {
    const uint at = first_row + query_row(s);
    own_queries[s] = at < queries ? q[q_base + at * q_pitch] : uvec4(0);
  }
  if (RANGES) {
    find_ranges(first_row, row_mask / mask_steps.z);
    uint last = 0;
    [[unroll]] for (uint i = 0; i < BLOCKS; ++i)
      last = max(last, last_seen[i]);
    first = first_seen / KEYS * KEYS;
    end = min(end, last);
    own_end = min(own_end, last_seen[block]);
  }
  LOAD_TILE(first + part * KEYS)
  [[unroll]] for (uint s = 0; s < ROW_SLOTS; ++s)
    if (query_row(s) < ROWS)
      tiles[query_row(s) * PITCH + column] = own_queries[s];
  barrier();
  EACH_COLUMN(LOAD_QUERIES)
  barrier();
  uint tile = part * 2 * TILE;
  STORE_TILE
  barrier();

  EACH_COLUMN(DECLARE)
  SUMS sums = all_sums(0.0), top = all_sums(lowest);
  // Unrolled, as the driver would have it, it takes four times as long to compile, and few queries twice as long.
  [[dont_unroll]] for (uint t0 = first; t0 < end; t0 += PARTS * KEYS) {
    const uint t = t0 + part * KEYS;
    LOAD_TILE(t + PARTS * KEYS)
    if (t + KEYS / 2 < own_end)
      ATTEND(EACH_KEYS, KEYS)
    else if (t < own_end)
      ATTEND(HALF_THE_KEYS, KEYS / 2)
    if (t0 + PARTS * KEYS >= end)
      break;
    if (BUFFERS == 2)
      tile = BUFFER + 4 * part * TILE - tile;
    else
      barrier();
    STORE_TILE
    barrier();
  }
  barrier();

  EACH_COLUMN(STORE)
  each_kept(reduced(sums, 1u, FUNCTION_total), FUNCTION_kept_total, 16 * gl_SubgroupID);
  if (PARTS > 1)
    each_kept(top, FUNCTION_kept_top, 16 * gl_SubgroupID);
  barrier();
  [[unroll]] for (uint s = 0; s < ROW_SLOTS; ++s) {
    const uint r = query_row(s);
    if (r < ROWS && first_row + r < queries)
      y[y_base + (first_row + r) * y_pitch] = joined(r, column);
  }
}
