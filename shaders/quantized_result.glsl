// What follows sums of products of bytes (src/ops/fused_quantized.cpp), and the bindings from the third on that it takes.
//
//   y = act(sum · (a_scale · b_scale) + bias)      quantised: saturate(⌊y · (1 / y_scale)⌉ + y_zero)
//   with a residual: z = saturate(⌊limited((y − y_zero) · y_scale + (r − r_zero) · r_scale) / z_scale⌉ + z_zero)
//
// Kernels compute with signed bytes: uint8 operands count 128 less, with a bit of each byte turned, and so do their zero points, here
// called *middles*; those of y, r and z are as they are. Products are rounded before sums, as the CPU does; the including kernel defines FLAGS,
// ACTIVATION and SUM_RANGE, the limits of a sum with a residual.
#include "bytes.glsl"
#include "activation.glsl"
#include "exact_arithmetic.glsl"
#include "parameters/product.h"
#include "parameters/quantized.h"

layout(set = 0, binding = 3, std430) readonly buffer a_scale_buffer { float a_scale[]; };
layout(set = 0, binding = 4, std430) readonly buffer b_scale_buffer { float b_scales[]; };
layout(set = 0, binding = 4, std430) readonly buffer b_scale_vector_buffer { vec4 b_scales4[]; };
layout(set = 0, binding = 5, std430) readonly buffer a_zero_buffer { uint8_t a_zero[]; };
layout(set = 0, binding = 6, std430) readonly buffer b_zero_buffer { uint8_t b_zeros[]; };
layout(set = 0, binding = 7, std430) readonly buffer bias_buffer { float biases[]; };
layout(set = 0, binding = 7, std430) readonly buffer bias_vector_buffer { vec4 biases4[]; };
layout(set = 0, binding = 8, std430) readonly buffer y_scale_buffer { float y_scale[]; };
layout(set = 0, binding = 9, std430) readonly buffer y_zero_buffer { uint8_t y_zero[]; };
layout(set = 0, binding = 10, std430) readonly buffer column_sum_buffer { int column_sums[]; };
layout(set = 0, binding = 10, std430) readonly buffer column_sum_vector_buffer { ivec4 column_sums4[]; };
layout(set = 0, binding = 11, std430) writeonly buffer byte_buffer { uint8_t out_bytes[]; };
layout(set = 0, binding = 11, std430) writeonly buffer word_buffer { uint out_words[]; };
layout(set = 0, binding = 11, std430) writeonly buffer word_pair_buffer { uvec2 out_pairs[]; };
layout(set = 0, binding = 11, std430) writeonly buffer real_buffer { float out_reals[]; };
layout(set = 0, binding = 11, std430) writeonly buffer real_vector_buffer { vec4 out_reals4[]; };
layout(set = 0, binding = 12, std430) readonly buffer residual_buffer { uint8_t residual_bytes[]; };
layout(set = 0, binding = 12, std430) readonly buffer residual_word_buffer { uint residual_words[]; };
layout(set = 0, binding = 12, std430) readonly buffer residual_pair_buffer { uvec2 residual_pairs[]; };
layout(set = 0, binding = 13, std430) readonly buffer r_scale_buffer { float r_scale[]; };
layout(set = 0, binding = 14, std430) readonly buffer r_zero_buffer { uint8_t r_zero[]; };
layout(set = 0, binding = 15, std430) readonly buffer z_scale_buffer { float z_scale[]; };
layout(set = 0, binding = 16, std430) readonly buffer z_zero_buffer { uint8_t z_zero[]; };
layout(set = 0, binding = 17, std430) readonly buffer inverse_buffer { float given_inverse[]; };

bool has(uint flag) { return (FLAGS & flag) != 0u; }

const bool A_UNSIGNED = (FLAGS & quantized_a_unsigned) != 0u;
const bool B_UNSIGNED = (FLAGS & quantized_b_unsigned) != 0u;
const uint A_FLIP = A_UNSIGNED ? 0x80808080u : 0u;
const uint B_FLIP = B_UNSIGNED ? 0x80808080u : 0u;
const bool A_CENTRED = (FLAGS & (quantized_a_unsigned | quantized_a_zero)) == 0u; // A's middle is 0
const bool B_CENTRED = (FLAGS & (quantized_b_unsigned | quantized_b_zero)) == 0u;
const bool QUANTIZES = (FLAGS & quantized_out) != 0u;
const bool HAS_SUM = (FLAGS & product_residual) != 0u;
const float nearest = 12582912.0; // 1.5 · 2^23: floats beside it are whole, so a sum with it is rounded, halves to even

int byte_number(uint bits, bool is_signed) { return is_signed ? int(bits << 24u) >> 24 : int(bits); }

int a_middle = centred_byte(has(quantized_a_zero) ? uint(a_zero[0]) : 0u, A_UNSIGNED);
int y_middle = has(quantized_out_zero) ? byte_number(uint(y_zero[0]), has(quantized_out_signed)) : 0;
int r_middle = has(quantized_r_zero) ? byte_number(uint(r_zero[0]), !has(quantized_r_unsigned)) : 0;
int z_middle = has(quantized_z_zero) ? byte_number(uint(z_zero[0]), has(quantized_z_signed)) : 0;
// Given if it is constant: an exact quotient has branches, at which an invocation would wait for the scale before it loads anything else.
float y_inverse = !QUANTIZES ? 1.0 : has(quantized_inverse) ? given_inverse[0] : exact_quotient(1.0, y_scale[0]);
vec2 y_range = (has(quantized_out_signed) ? vec2(-128, 127) : vec2(0, 255)) - float(y_middle);
vec2 z_range = (has(quantized_z_signed) ? vec2(-128, 127) : vec2(0, 255)) - float(z_middle);

int b_middle(uint column) {
  const uint at = has(quantized_b_zeros) ? column : 0u;
  return centred_byte(has(quantized_b_zero) ? uint(b_zeros[at]) : 0u, B_UNSIGNED);
}

/// y of a sum, before it is quantised; whose own terms are those of its column.
float finished(int sum, float scale, float bias, vec2 act) {
  precise const float product = float(sum) * scale;
  precise const float value = product + bias;
  return activate(ACTIVATION, has(product_bias) ? value : product, act.x, act.y);
}

/// y of a single column's sum.
float finished_column(int sum, uint column, vec2 act) {
  if (has(quantized_column_sums) && !A_CENTRED)
    sum -= a_middle * column_sums[column];
  const float scale = b_scales[has(quantized_b_scales) ? column : 0u] * a_scale[0];
  return finished(sum, scale, has(product_bias) ? biases[has(quantized_biases) ? column : 0u] : 0.0, act);
}

/// y of four columns' sums; `column` is a multiple of 4.
vec4 finished_columns(ivec4 sums, uint column, vec2 act) {
  if (has(quantized_column_sums) && !A_CENTRED)
    sums -= a_middle * column_sums4[column / 4u];
  const vec4 scale = (has(quantized_b_scales) ? b_scales4[column / 4u] : vec4(b_scales[0])) * a_scale[0];
  const vec4 bias = !has(product_bias) ? vec4(0.0) : has(quantized_biases) ? biases4[column / 4u] : vec4(biases[0]);
  vec4 y;
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    y[i] = finished(sums[i], scale[i], bias[i], act);
  return y;
}

/// ⌊v⌉ + middle within `range`, which counts from the middle; NaN gives the low end.
int rounded(float v, vec2 range, int middle) {
  const float raised = v > range.x ? v : range.x;
  precise const float whole = (raised < range.y ? raised : range.y) + nearest;
  return floatBitsToInt(whole) - floatBitsToInt(nearest) + middle;
}

/// z of own bytes y and the residual's.
ivec4 summed(ivec4 y, ivec4 r) {
  precise const vec4 own = vec4(y - y_middle) * y_scale[0], more = vec4(r - r_middle) * r_scale[0];
  precise const vec4 sum = own + more;
  const vec2 limits = SUM_RANGE;
  const float scale = z_scale[0];
  vec4 limited, quotient;
  bool decided = true;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const float raised = sum[i] < limits.x ? limits.x : sum[i];
    limited[i] = exact_isnan(sum[i]) ? sum[i] : (raised > limits.y ? limits.y : raised);
    quotient[i] = guessed_quotient(limited[i], scale);
    decided = decided && rounds_alike(quotient[i], scale);
  }
  if (!decided)
    [[dont_unroll]] for (uint i = 0u; i < 4u; ++i)
      quotient[i] = exact_quotient(limited[i], scale);
  ivec4 z;
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    z[i] = rounded(quotient[i], z_range, z_middle);
  return z;
}

/// Quantised results; `r` are the residual's elements, if there is one.
ivec4 quantised(vec4 y, ivec4 r) {
  precise const vec4 v = y * y_inverse;
  ivec4 own;
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    own[i] = rounded(v[i], y_range, y_middle);
  return HAS_SUM ? summed(own, r) : own;
}

/// The same as words; `r` has four elements.
uint quantised_word(vec4 y, uint r) {
  return word_of(quantised(y, has(quantized_r_unsigned) ? unsigned_bytes(r) : signed_bytes(r)));
}

/// Writes the first `count` of four elements of the output; `at`: where they go, all of them within it.
void write_each(uvec4 at, vec4 y, uint count) {
  ivec4 q = ivec4(0);
  if (QUANTIZES) {
    ivec4 r = ivec4(0);
    [[unroll]] for (uint i = 0u; i < 4u; ++i)
      r[i] = HAS_SUM ? byte_number(uint(residual_bytes[at[i]]), !has(quantized_r_unsigned)) : 0;
    q = quantised(y, r);
  }
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    if (i < count) {
      if (QUANTIZES)
        out_bytes[at[i]] = uint8_t(uint(q[i]) & 255u);
      else
        out_reals[at[i]] = y[i];
    }
}

/// Writes element `at` of the output.
void write_result(uint at, float y) {
  write_each(uvec4(at), vec4(y), 1u);
}

/// Writes the output's elements from `at` on, a multiple of 4.
void write_results(uint at, vec4 y) {
  if (QUANTIZES)
    out_words[at / 4u] = quantised_word(y, HAS_SUM ? residual_words[at / 4u] : 0u);
  else
    out_reals4[at / 4u] = y;
}
