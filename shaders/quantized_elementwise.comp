#version 450
// Elementwise chains (elementwise_program.glsl) whose operands are floats, or bytes that are dequantised first, and
// whose result may be quantised (src/ops/composed/fused_quantized_elementwise.cpp). An invocation computes single
// elements, or four neighbours at once where no operand walks by strides.
//
// Constants (parameters/quantized_elementwise.h): 20 the operands' kinds; 21 the result's; 22 whether elements come in
// fours. Bindings: three for each operand (elements, scale, zero point), then the result's scale, its zero point, and
// the result.
// Variants: f32_single f32_1 f32_4 f32_16
#extension GL_GOOGLE_include_directive : require
#include "bytes.glsl"
#include "elementwise_program.glsl"
#include "parameters/quantized_elementwise.h"

layout(constant_id = 20) const uint kinds = 0u;
layout(constant_id = 21) const uint result_kind = chain_float;
layout(constant_id = 22) const bool fours = false;

#if MAX_STEPS == 1
#define OPERANDS 3
#else
#define OPERANDS 8
#endif
#define AT(i) set = 0, binding = 1 + 3 * i
#define OPERAND(i) \
  layout(AT(i), std430) readonly buffer bytes_of_##i { uint8_t bytes##i[]; }; \
  layout(AT(i), std430) readonly buffer words_of_##i { uint words##i[]; }; \
  layout(AT(i), std430) readonly buffer floats_of_##i { float floats##i[]; }; \
  layout(AT(i), std430) readonly buffer vectors_of_##i { vec4 vectors##i[]; }; \
  layout(AT(i) + 1, std430) readonly buffer scale_of_##i { float scale##i[]; }; \
  layout(AT(i) + 2, std430) readonly buffer zero_of_##i { uint8_t zero##i[]; };

OPERAND(0)
OPERAND(1)
OPERAND(2)
#if OPERANDS == 8
OPERAND(3)
OPERAND(4)
OPERAND(5)
OPERAND(6)
OPERAND(7)
#endif
layout(AT(OPERANDS), std430) readonly buffer result_scale_buffer { float result_scale[]; };
layout(AT(OPERANDS) + 1, std430) readonly buffer result_zero_buffer { uint8_t result_zero[]; };
layout(AT(OPERANDS) + 2, std430) writeonly buffer result_byte_buffer { uint8_t result_bytes[]; };
layout(AT(OPERANDS) + 2, std430) writeonly buffer result_word_buffer { uint result_words[]; };
layout(AT(OPERANDS) + 2, std430) writeonly buffer result_float_buffer { float result_floats[]; };
layout(AT(OPERANDS) + 2, std430) writeonly buffer result_vector_buffer { vec4 result_vectors[]; };

uint kind_of(uint i) { return (kinds >> (chain_kind_bits * i)) & 3u; }
bool has_zero(uint i) { return ((kinds >> (chain_kind_bits * i)) & chain_zero) != 0u; }
uint mode_of(uint i) { return (modes >> (2u * i)) & 3u; }

int number_of(uint bits, uint kind) {
  return kind == chain_uint8 ? int(bits) : int(bits << 24u) >> 24;
}
ivec4 numbers_of(uint word, uint kind) {
  return kind == chain_uint8 ? unsigned_bytes(word) : signed_bytes(word);
}

int result_middle = (result_kind & chain_zero) != 0u ? number_of(uint(result_zero[0]), result_kind & 3u) : 0;

/// The quantised result; NaN gives the low end.
int quantised(float x) {
  const bool is_unsigned = (result_kind & 3u) == chain_uint8;
  const float low = is_unsigned ? 0.0 : -128.0, high = is_unsigned ? 255.0 : 127.0;
  const float q = exact_round(exact_quotient(x, result_scale[0])) + float(result_middle);
  return int(q > low ? (q < high ? q : high) : low);
}

#define MIDDLE(i) (has_zero(uint(i)) ? number_of(uint(zero##i[0]), kind_of(uint(i))) : 0)
#define LOAD(i) \
  if (input_count > uint(i)) { \
    const uint at = offset_of(uint(i), index); \
    if (kind_of(uint(i)) == chain_float) \
      v[i] = floats##i[at]; \
    else \
      v[i] = float(number_of(uint(bytes##i[at]), kind_of(uint(i))) - MIDDLE(i)) * scale##i[0]; \
  }

vec4 four[OPERANDS];
#define LOAD_FOUR(i) \
  if (input_count > uint(i)) { \
    const bool single = mode_of(uint(i)) == 1u; \
    if (kind_of(uint(i)) == chain_float) \
      four[i] = single ? vec4(floats##i[0]) : vectors##i[index]; \
    else \
      four[i] = vec4((single ? ivec4(number_of(uint(bytes##i[0]), kind_of(uint(i)))) \
          : numbers_of(words##i[index], kind_of(uint(i)))) - \
                     MIDDLE(i)) * scale##i[0]; \
  }
#define TAKE(i) \
  if (input_count > uint(i)) v[i] = four[i][part];

#if OPERANDS == 8
#define EACH_OPERAND(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
#define EACH_OPERAND(X) X(0) X(1) X(2)
#endif

void compute_one(uint index) {
  EACH_OPERAND(LOAD)
  RUN_STEPS;
  if (result_kind == chain_float)
    result_floats[index] = last_result();
  else
    result_bytes[index] = uint8_t(uint(quantised(last_result())) & 255u);
}

/// Elements [4 · index, + 4).
void compute_four(uint index) {
  EACH_OPERAND(LOAD_FOUR)
  vec4 y;
  ivec4 q;
  [[unroll]] for (uint part = 0u; part < 4u; ++part) {
    EACH_OPERAND(TAKE)
    RUN_STEPS;
    if (result_kind == chain_float)
      y[part] = last_result();
    else
      q[part] = quantised(last_result());
  }
  if (result_kind == chain_float)
    result_vectors[index] = y;
  else
    result_words[index] = word_of(q);
}

void main() {
  const uint first = flat_group() * 256u * each + gl_LocalInvocationID.x;
  [[unroll]] for (uint e = 0u; e < each; ++e) {
    const uint index = first + e * 256u;
    if (index >= (fours ? count / 4u : count))
      return;
    if (fours)
      compute_four(index);
    else
      compute_one(index);
  }
}
