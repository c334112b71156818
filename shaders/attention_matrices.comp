#version 450
// Softmax attention in one pass over the keys, as attention.comp, by matrices of the whole group: float16, sums in float.
//
// A group computes ROWS queries of one head. For each tile of KEYS keys: scores = Q · Kᵀ; each row's largest score so far, `top`, in units
// of log2(e); weights = 2^(scores − top); `sums` and the output `o` shrink by 2^(old top − top) before they grow (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018). A row's `top` stands in each of the row's columns, and `sums` are by column
// until the end. Rows after the last query compute something that is not written; keys after the last one weigh nothing. Variants whose tile
// has room for all the keys (`all…`) need none of that: one softmax, and a tenth of the driver's time to compile.
//
// Differs from attention.comp: weights are rounded to float16 before they meet V; a masked key's V is multiplied by zero, so what calls for that never to
// happen does not come here; the scale is above zero.
// Variants: f16_64x32x64 f16_32x64x64 f16_64x32x128 f16_32x64x128 f16_all32x128x64 f16_all32x256x64
// Compiled twice: see group_matrix.glsl.
#extension GL_GOOGLE_include_directive : require
#define TROUPE_f16
#include "types.glsl"
#include "common.glsl"
#include "group_matrix.glsl"
#include "parameters/attention.h"

layout(constant_id = 0) const uint FLAGS = 0;
const bool HAS_MASK = (FLAGS & attention_mask) != 0u;
const bool CAUSAL = (FLAGS & attention_causal) != 0u;

#if defined(TROUPE_f16_64x32x64)
const uint ROWS = 64u, KEYS = 32u, WIDTH = 64u;
#define THREADS 128
#elif defined(TROUPE_f16_32x64x64)
const uint ROWS = 32u, KEYS = 64u, WIDTH = 64u;
#define THREADS 256
#elif defined(TROUPE_f16_64x32x128)
const uint ROWS = 64u, KEYS = 32u, WIDTH = 128u;
#define THREADS 128
#elif defined(TROUPE_f16_32x64x128)
const uint ROWS = 32u, KEYS = 64u, WIDTH = 128u;
#define THREADS 128
#elif defined(TROUPE_f16_all32x128x64)
const uint ROWS = 32u, KEYS = 128u, WIDTH = 64u;
#define THREADS 256
#define ALL_KEYS
#elif defined(TROUPE_f16_all32x256x64)
const uint ROWS = 32u, KEYS = 256u, WIDTH = 64u;
#define THREADS 256
#define ALL_KEYS
#endif
layout(local_size_x = THREADS) in;

layout(set = 0, binding = 1, std430) readonly buffer query_buffer { float16_t q[]; };
layout(set = 0, binding = 2, std430) readonly buffer key_buffer { float16_t k[]; };
layout(set = 0, binding = 3, std430) readonly buffer value_buffer { float16_t v[]; };
layout(set = 0, binding = 4, std430) readonly buffer mask_buffer { float16_t mask[]; };
layout(set = 0, binding = 5, std430) buffer output_buffer { float16_t y[]; };

#define QUERIES GROUP_MATRIX(TYPE_F16, ROWS, WIDTH, left_use)
#define KEYS_TURNED GROUP_MATRIX(TYPE_F16, WIDTH, KEYS, right_use)
#define SCORES GROUP_MATRIX(TYPE_F32, ROWS, KEYS, sum_use)
#define HALF_SCORES GROUP_MATRIX(TYPE_F16, ROWS, KEYS, sum_use)
#define WEIGHTS GROUP_MATRIX(TYPE_F16, ROWS, KEYS, left_use)
#define VALUES GROUP_MATRIX(TYPE_F16, KEYS, WIDTH, right_use)
#define SUMS GROUP_MATRIX(TYPE_F32, ROWS, WIDTH, sum_use)
#define RESULT GROUP_MATRIX(TYPE_F16, ROWS, WIDTH, sum_use)

spirv_instruction(id = 80) QUERIES all_queries(float16_t x);
spirv_instruction(id = 80) KEYS_TURNED all_keys(float16_t x);
spirv_instruction(id = 80) VALUES all_values(float16_t x);
spirv_instruction(id = 80) SCORES all_scores(float x);
spirv_instruction(id = 80) SUMS all_sums(float x);
// The last literals: no memory operands; whether a view follows.
spirv_instruction(id = 5367) QUERIES load_queries(spirv_by_reference float16_t at, QUERIES outside, LAYOUT tile,
                                                  spirv_literal uint memory, spirv_literal uint view);
spirv_instruction(id = 5367) KEYS_TURNED load_keys(spirv_by_reference float16_t at, KEYS_TURNED outside, LAYOUT tile,
                                                   spirv_literal uint memory, spirv_literal uint view, TURNED how);
spirv_instruction(id = 5367) VALUES load_values(spirv_by_reference float16_t at, VALUES outside, LAYOUT tile,
                                                spirv_literal uint memory, spirv_literal uint view);
spirv_instruction(id = 5368) void store_result(spirv_by_reference float16_t at, RESULT what, LAYOUT tile,
                                               spirv_literal uint memory, spirv_literal uint view);
spirv_instruction(id = 4459) SCORES multiply_add(QUERIES a, KEYS_TURNED b, SCORES c);
spirv_instruction(id = 4459) SUMS multiply_add_values(WEIGHTS a, VALUES b, SUMS c);
spirv_instruction(id = 115) HALF_SCORES halved_scores(SCORES x);
spirv_instruction(id = 115) RESULT halved_result(SUMS x);
spirv_instruction(capabilities = [5431], id = 5293) WEIGHTS as_weights(HALF_SCORES x);
spirv_instruction(id = 129) SCORES add(SCORES a, SCORES b);
spirv_instruction(id = 133) SCORES times(SCORES a, SCORES b);
spirv_instruction(id = 133) SUMS times_sums(SUMS a, SUMS b);
// 1: by rows; the result may have other columns.
spirv_instruction(capabilities = [5430], id = 5366) SCORES reduced(SCORES m, spirv_literal uint by, spirv_literal uint f);
spirv_instruction(capabilities = [5430], id = 5366) SUMS widened(SCORES m, spirv_literal uint by, spirv_literal uint f);
spirv_instruction(capabilities = [5432], id = 5369) SCORES each_masked(SCORES m, spirv_literal uint f, uint key, uint row, uint row_mask);
spirv_instruction(capabilities = [5432], id = 5369) SCORES each_top(SCORES m, spirv_literal uint f, SCORES old, float scale);
spirv_instruction(capabilities = [5432], id = 5369) SCORES each_weight(SCORES m, spirv_literal uint f, SCORES top, float scale);
spirv_instruction(capabilities = [5432], id = 5369) SCORES each_shrink(SCORES m, spirv_literal uint f, SCORES top);
spirv_instruction(capabilities = [5432], id = 5369) SCORES each_inverse(SCORES m, spirv_literal uint f);

#ifndef FUNCTION_larger
#define FUNCTION_larger 1u
#define FUNCTION_total 1u
#define FUNCTION_either 1u
#define FUNCTION_masked 1u
#define FUNCTION_grown 1u
#define FUNCTION_weight 1u
#define FUNCTION_shrink 1u
#define FUNCTION_inverse 1u
#endif

const float log2_e = 1.44269504;
const float lowest = -1e30; // below all scores, but not −infinity: the difference of two stays a number

float larger(const in float a, const in float b) { return max(a, b); } // a NaN that it drops makes its own weight NaN
float total(const in float a, const in float b) { return a + b; }
float either(const in float a, const in float b) { return a; }
float grown(const in uint r, const in uint c, const in float largest, const in float old, const in float factor) {
  return max(largest * factor, old);
}
float weight(const in uint r, const in uint c, const in float score, const in float top, const in float factor) {
  return exp2(fma(score, factor, -top));
}
float shrink(const in uint r, const in uint c, const in float old, const in float top) { return exp2(old - top); }
float inverse(const in uint r, const in uint c, const in float sum) { return 1.0 / sum; }

/// A score with its mask, in units of log2(e), where some key does not count.
float masked(const in uint r, const in uint c, const in float score, const in uint key, const in uint row,
             const in uint row_mask) {
  const uint t = key + c, s = min(row + r, queries - 1);
  const float scaled = score * (scale * log2_e);
  if (t >= keys || (CAUSAL && int(t) > int(s) + causal_offset))
    return -infinity;
  return HAS_MASK ? fma(float(mask[row_mask + s * mask_steps.z + t * mask_steps.w]), log2_e, scaled) : scaled;
}

/// `x`, a multiple of the width, which the compiler would not know: addresses that may be odd cost most of the speed.
uint whole(uint x) { return x & ~(WIDTH - 1u); }

void main() {
  const float16_t zero = float16_t(0.0); // what a type names stands before the first matrix
  const uint group = flat_group();
  if (group >= groups)
    return;
  const uint head_index = group / row_blocks, row = (group - head_index * row_blocks) * ROWS;
  const uint heads = kv_heads * sharing, b = head_index / heads, head = head_index - b * heads;
  const uint kv_head = head / sharing;
  const uint q_base = whole(q_steps.w + b * q_steps.x + head * q_steps.y);
  const uint k_base = whole(k_steps.w + b * k_steps.x + kv_head * k_steps.y);
  const uint v_base = whole(v_steps.w + b * v_steps.x + kv_head * v_steps.y);
  const uint y_base = whole(b * y_steps.x + head * y_steps.y);
  const uint row_mask = b * mask_steps.x + head * mask_steps.y;
  const float factor = scale * log2_e;

  const LAYOUT key_rows = rows_of(keys, WIDTH, whole(k_steps.z)), value_rows = rows_of(keys, WIDTH, whole(v_steps.z));
  const TURNED key_view = turned();
  QUERIES queries_tile = load_queries(q[q_base], all_queries(zero),
                                      slice(rows_of(queries, WIDTH, whole(q_steps.z)), row, ROWS, 0, WIDTH), 0u, 0u);
#ifdef ALL_KEYS
  KEYS_TURNED keys_tile = load_keys(k[k_base], all_keys(zero), slice(key_rows, 0, KEYS, 0, WIDTH), 0u, 1u, key_view);
  VALUES values_tile = load_values(v[v_base], all_values(zero), slice(value_rows, 0, KEYS, 0, WIDTH), 0u, 0u);
  SCORES sums = multiply_add(queries_tile, keys_tile, all_scores(0.0));
  float unit = factor;
  if (HAS_MASK || CAUSAL || keys < KEYS) {
    sums = each_masked(sums, FUNCTION_masked, 0, row, row_mask);
    unit = 1.0;
  }
  SCORES top = each_top(reduced(sums, 1u, FUNCTION_larger), FUNCTION_grown, all_scores(lowest), unit);
  sums = each_weight(sums, FUNCTION_weight, top, unit);
  SUMS o = multiply_add_values(as_weights(halved_scores(sums)), values_tile, all_sums(0.0));
#else
  SUMS o = all_sums(0.0);
  SCORES sums = all_scores(0.0), top = all_scores(lowest);
  const uint end = CAUSAL ? uint(clamp(int(row + ROWS) + causal_offset, 0, int(keys))) : keys;
  for (uint t = 0; t < end; t += KEYS) {
    KEYS_TURNED keys_tile =
        load_keys(k[k_base], all_keys(zero), slice(key_rows, t, KEYS, 0, WIDTH), 0u, 1u, key_view);
    SCORES scores = multiply_add(queries_tile, keys_tile, all_scores(0.0));
    float unit = factor;
    if (HAS_MASK || t + KEYS > keys || (CAUSAL && int(t + KEYS) > int(row) + causal_offset + 1)) {
      scores = each_masked(scores, FUNCTION_masked, t, row, row_mask);
      unit = 1.0;
    }
    SCORES next = each_top(reduced(scores, 1u, FUNCTION_larger), FUNCTION_grown, top, unit);
    scores = each_weight(scores, FUNCTION_weight, next, unit);
    SCORES less = each_shrink(top, FUNCTION_shrink, next);
    top = next;
    sums = add(times(less, sums), scores);
    VALUES values_tile = load_values(v[v_base], all_values(zero), slice(value_rows, t, KEYS, 0, WIDTH), 0u, 0u);
    o = multiply_add_values(as_weights(halved_scores(scores)), values_tile,
                            times_sums(o, widened(less, 1u, FUNCTION_either)));
  }
#endif
  sums = each_inverse(reduced(sums, 1u, FUNCTION_total), FUNCTION_inverse);
  o = times_sums(o, widened(sums, 1u, FUNCTION_either));
  store_result(y[y_base], halved_result(o), slice(rows_of(queries, WIDTH, whole(y_steps.z)), row, ROWS, 0, WIDTH), 0u, 0u);
}
