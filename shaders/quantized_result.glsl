// What follows sums of products of bytes (src/ops/composed/fused_quantized.cpp), and the bindings from the third on
// that it takes.
//
//   y = act(sum · (a_scale · b_scale) + bias)      quantised: saturate(⌊y / y_scale⌉ + y_zero)
//   with a residual: z = saturate(⌊limited((y − y_zero) · y_scale + (r − r_zero) · r_scale) / z_scale⌉ + z_zero)
//
// Kernels compute with signed bytes: uint8 operands count 128 less, with a bit of each byte turned, and so do their
// zero points, here called *middles*; those of y, r and z are as they are. Products are rounded before sums, as the CPU
// does; the including kernel defines FLAGS, ACTIVATION and SUM_RANGE, the limits of a sum with a residual.
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
// Read where parameters are constants of the code, too (vulkan/block_constants.hpp): products that differ in them alone
// are one pipeline.
layout(set = 0, binding = 0, std140) uniform known_parameters {
  layout(offset = 4 * quantized_numbers_at) quantized_numbers known;
};

bool has(uint flag) { return (FLAGS & flag) != 0u; }

const bool A_UNSIGNED = (FLAGS & quantized_a_unsigned) != 0u;
const bool B_UNSIGNED = (FLAGS & quantized_b_unsigned) != 0u;
const uint A_FLIP = A_UNSIGNED ? 0x80808080u : 0u;
const uint B_FLIP = B_UNSIGNED ? 0x80808080u : 0u;
const bool A_CENTRED = (FLAGS & (quantized_a_unsigned | quantized_a_zero)) == 0u; // A's middle is 0
const bool B_CENTRED = (FLAGS & (quantized_b_unsigned | quantized_b_zero)) == 0u;
const bool QUANTIZES = (FLAGS & quantized_out) != 0u;
const bool KNOWN = (FLAGS & quantized_known) != 0u;
const bool HAS_SUM = (FLAGS & product_residual) != 0u;
const float nearest = 12582912.0; // 1.5 · 2^23: floats beside it are whole, so a sum with it is rounded, halves to even

int byte_number(uint bits, bool is_signed) { return is_signed ? int(bits << 24u) >> 24 : int(bits); }

// What kernels have one of. A buffer's is asked for as soon as a group begins, and is as it is in memory: to convert it
// would be to wait for it.
#define ZERO_BYTE(flag, name) (!has(flag) ? uint8_t(0) : KNOWN ? uint8_t(known.name) : name[0])
#define SCALE(name) (KNOWN ? known.name : name[0])
uint8_t a_zero_byte = ZERO_BYTE(quantized_a_zero, a_zero), y_zero_byte = ZERO_BYTE(quantized_out_zero, y_zero);
uint8_t r_zero_byte = ZERO_BYTE(quantized_r_zero, r_zero), z_zero_byte = ZERO_BYTE(quantized_z_zero, z_zero);
float a_step = SCALE(a_scale), y_step = QUANTIZES ? SCALE(y_scale) : 1.0, r_step = HAS_SUM ? SCALE(r_scale) : 1.0;
float z_step = HAS_SUM ? SCALE(z_scale) : 1.0,
    z_inverse = !HAS_SUM ? 1.0 : KNOWN ? known.z_inverse : exact_quotient(1.0, z_scale[0]);
float y_inverse = !QUANTIZES ? 1.0 : KNOWN ? known.y_inverse : exact_quotient(1.0, y_scale[0]);

int a_middle() { return centred_byte(uint(a_zero_byte), A_UNSIGNED); }
int y_middle() { return has(quantized_out_zero) ? byte_number(uint(y_zero_byte), has(quantized_out_signed)) : 0; }
int r_middle() { return has(quantized_r_zero) ? byte_number(uint(r_zero_byte), !has(quantized_r_unsigned)) : 0; }
int z_middle() { return has(quantized_z_zero) ? byte_number(uint(z_zero_byte), has(quantized_z_signed)) : 0; }

/// What a byte can be, less its middle.
vec2 range_of(bool is_signed, int middle) { return (is_signed ? vec2(-128, 127) : vec2(0, 255)) - float(middle); }

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
    sum -= a_middle() * column_sums[column];
  const float scale = b_scales[has(quantized_b_scales) ? column : 0u] * a_step;
  return finished(sum, scale, has(product_bias) ? biases[has(quantized_biases) ? column : 0u] : 0.0, act);
}

/// What y of four columns needs besides their sums.
struct column_terms {
  vec4 scales, biases;
  ivec4 sums; // of B's columns
};

const column_terms no_terms = column_terms(vec4(0.0), vec4(0.0), ivec4(0));

/// For a `column` that is a multiple of 4.
column_terms terms_of(uint column) {
  column_terms own;
  own.scales = has(quantized_b_scales) ? b_scales4[column / 4u] : vec4(b_scales[0]);
  own.biases = !has(product_bias) ? vec4(0.0) : has(quantized_biases) ? biases4[column / 4u] : vec4(biases[0]);
  own.sums = has(quantized_column_sums) && !A_CENTRED ? column_sums4[column / 4u] : ivec4(0);
  return own;
}

/// y of four columns' sums.
vec4 finished_columns(ivec4 sums, column_terms own, vec2 act) {
  if (has(quantized_column_sums) && !A_CENTRED)
    sums -= a_middle() * own.sums;
  const vec4 scales = own.scales * a_step;
  vec4 y;
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    y[i] = finished(sums[i], scales[i], own.biases[i], act);
  return y;
}

/// v within `range`; NaN gives the low end.
float within(float v, vec2 range) {
  const float raised = v > range.x ? v : range.x;
  return raised < range.y ? raised : range.y;
}

/// ⌊v⌉ + middle within `range`, which counts from the middle.
int rounded(float v, vec2 range, int middle) {
  precise const float whole = within(v, range) + nearest;
  return floatBitsToInt(whole) - floatBitsToInt(nearest) + middle;
}

/// ⌊v / step⌉ + middle within `range`; `inverse` is 1 / step.
ivec4 rounded_quotients(vec4 v, float step, float inverse, vec2 range, int middle) {
  precise const vec4 guesses = v * inverse;
  ivec4 q;
  uint undecided = is_ordinary(step) ? 0u : 15u;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const float guess = within(guesses[i], range);
    precise const float whole = guess + nearest;
    precise const float near = whole - nearest;
    undecided |= rounds_alike(guess, near) ? 0u : 1u << i;
    q[i] = floatBitsToInt(whole) - floatBitsToInt(nearest) + middle;
  }
  // Few are: of 1,000 groups of 256 elements 25 have one.
  [[dont_unroll]] for (; undecided != 0u; undecided &= undecided - 1u) {
    const int i = findLSB(undecided);
    q[i] = rounded(exact_quotient(v[i], step), range, middle);
  }
  return q;
}

/// z of own bytes y and the residual's.
ivec4 summed(ivec4 y, ivec4 r) {
  precise const vec4 own = vec4(y - y_middle()) * y_step, more = vec4(r - r_middle()) * r_step;
  precise const vec4 sum = own + more;
  const vec2 limits = SUM_RANGE;
  vec4 limited;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const float raised = sum[i] < limits.x ? limits.x : sum[i];
    limited[i] = exact_isnan(sum[i]) ? sum[i] : (raised > limits.y ? limits.y : raised);
  }
  return rounded_quotients(limited, z_step, z_inverse, range_of(has(quantized_z_signed), z_middle()), z_middle());
}

/// Quantised results; `r` are the residual's elements, if there is one.
ivec4 quantised(vec4 y, ivec4 r) {
  const vec2 range = range_of(has(quantized_out_signed), y_middle());
  const ivec4 own = rounded_quotients(y, y_step, y_inverse, range, y_middle());
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

/// Four elements of the residual from `at` on, a multiple of 4.
uint residual_word(uint at) { return HAS_SUM ? residual_words[at / 4u] : 0u; }

/// Writes the output's elements from `at` on, a multiple of 4; `r` are the residual's.
void write_results(uint at, vec4 y, uint r) {
  if (QUANTIZES)
    out_words[at / 4u] = quantised_word(y, r);
  else
    out_reals4[at / 4u] = y;
}
