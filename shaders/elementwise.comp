#version 450
// A chain of float functions over operands that broadcast together: one step for a lone Relu or Add, up to 16 for a fused
// chain (src/ops/fused_elementwise.hpp). The chain is in specialisation constants, so the driver compiles straight code.
//
// Constants: 0 number of steps; 1 … 16 the steps, a byte each for code, a, b, c; 17 number of inputs; 18 how each input is
// walked, two bits each: 0 like the output, 1 a single element, 2 by strides; 19 elements of an invocation. Operands of a
// step: 0 … 7 inputs, 8 … 23 results, 24 … 39 constants. Inputs that are absent are bound to the first one; variants of one
// step have three inputs.
// Drivers compile the whole of apply() for every step before they see that a step is constant, so shorter chains have
// variants of their own: TYPE_1, TYPE_4, TYPE_16. The codes that only single steps have are in TYPE_single.
// Variants: f32_single f32_1 f32_4 f32_16 f16_single f16_1 f16_4 f16_16
#extension GL_GOOGLE_include_directive : require
#if defined(TROUPE_f32_single) || defined(TROUPE_f32_1) || defined(TROUPE_f32_4) || defined(TROUPE_f32_16)
#define TROUPE_f32 1
#else
#define TROUPE_f16 1
#endif
#if defined(TROUPE_f32_single) || defined(TROUPE_f16_single)
#define SINGLE
#define MAX_STEPS 1
#elif defined(TROUPE_f32_1) || defined(TROUPE_f16_1)
#define MAX_STEPS 1
#elif defined(TROUPE_f32_4) || defined(TROUPE_f16_4)
#define MAX_STEPS 4
#else
#define MAX_STEPS 16
#endif
#include "types.glsl"
#include "float_math.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint steps = 1u;
layout(constant_id = 1) const uint S0 = 0u;
layout(constant_id = 2) const uint S1 = 0u;
layout(constant_id = 3) const uint S2 = 0u;
layout(constant_id = 4) const uint S3 = 0u;
layout(constant_id = 5) const uint S4 = 0u;
layout(constant_id = 6) const uint S5 = 0u;
layout(constant_id = 7) const uint S6 = 0u;
layout(constant_id = 8) const uint S7 = 0u;
layout(constant_id = 9) const uint S8 = 0u;
layout(constant_id = 10) const uint S9 = 0u;
layout(constant_id = 11) const uint S10 = 0u;
layout(constant_id = 12) const uint S11 = 0u;
layout(constant_id = 13) const uint S12 = 0u;
layout(constant_id = 14) const uint S13 = 0u;
layout(constant_id = 15) const uint S14 = 0u;
layout(constant_id = 16) const uint S15 = 0u;
layout(constant_id = 17) const uint input_count = 1u;
layout(constant_id = 18) const uint modes = 0u;
layout(constant_id = 19) const uint elements_each = 1u;

layout(set = 0, binding = 0, std140) uniform parameters {
  uint count;
  uint rank;
  uint unused0, unused1;
  uvec4 dims[2];       // innermost first
  uvec4 strides[16];   // of input i along axis a: word 8 i + a
  vec4 constants[4];
};
layout(set = 0, binding = 1, std430) readonly buffer input0 { T x0[]; };
layout(set = 0, binding = 2, std430) readonly buffer input1 { T x1[]; };
layout(set = 0, binding = 3, std430) readonly buffer input2 { T x2[]; };
#if MAX_STEPS == 1
layout(set = 0, binding = 4, std430) writeonly buffer target { T y[]; };
#else
layout(set = 0, binding = 4, std430) readonly buffer input3 { T x3[]; };
layout(set = 0, binding = 5, std430) readonly buffer input4 { T x4[]; };
layout(set = 0, binding = 6, std430) readonly buffer input5 { T x5[]; };
layout(set = 0, binding = 7, std430) readonly buffer input6 { T x6[]; };
layout(set = 0, binding = 8, std430) readonly buffer input7 { T x7[]; };
layout(set = 0, binding = 9, std430) writeonly buffer target { T y[]; };
#endif

float v[24]; // inputs, then results

float operand(uint i) {
  return i < 24u ? v[i] : constants[(i - 24u) >> 2u][(i - 24u) & 3u];
}

float min_nan(float a, float b) { return exact_isnan(a) ? a : (exact_isnan(b) ? b : (a < b ? a : b)); }
float max_nan(float a, float b) { return exact_isnan(a) ? a : (exact_isnan(b) ? b : (a > b ? a : b)); }

#ifdef SINGLE
/// a − b · trunc(a / b) by long division of the mantissas, seven bits of the quotient at a time: exact as C's fmod is.
float truncated_modulo(float a, float b) {
  const uint bits_a = floatBitsToUint(a) & 0x7fffffffu, bits_b = floatBitsToUint(b) & 0x7fffffffu;
  if (bits_a >= 0x7f800000u || bits_b > 0x7f800000u || bits_b == 0u)
    return nan_value;
  if (bits_a < bits_b)
    return a;
  const bool small_a = bits_a < 0x800000u, small_b = bits_b < 0x800000u; // subnormal
  uint ma = (bits_a & 0x7fffffu) | (small_a ? 0u : 0x800000u), mb = (bits_b & 0x7fffffu) | (small_b ? 0u : 0x800000u);
  const int ea = small_a ? 1 : int(bits_a >> 23), eb = small_b ? 1 : int(bits_b >> 23);
  ma %= mb;
  for (int shift = ea - eb; shift > 0; shift -= 7)
    ma = (ma << min(shift, 7)) % mb;
  // ma · 2^(eb − 150) put together bit by bit: a device that flushes subnormal numbers would lose those in arithmetic.
  const int up = ma == 0u ? 0 : min(23 - findMSB(ma), eb - 1);
  const uint m = ma << up, sign = floatBitsToUint(a) & 0x80000000u;
  return uintBitsToFloat(sign | (m < 0x800000u ? m : (uint(eb - up) << 23) | (m & 0x7fffffu)));
}

/// The remainder with the sign of b, as Python's %.
float modulo(float a, float b) {
  const float r = truncated_modulo(a, b);
  const bool is_zero = (floatBitsToUint(r) & 0x7fffffffu) == 0u;
  return !is_zero && ((floatBitsToUint(r) ^ floatBitsToUint(b)) >> 31) != 0u ? r + b : r;
}
#endif

/// Codes 0 … 29 are those of elementwise_code; the others stand for single operators (src/launch/elementwise.hpp). Precise:
/// every step is rounded as the CPU rounds it, or a Floor behind a product and a sum would see another number.
precise float apply(uint code, uint ia, uint ib, uint ic) {
  const float a = operand(ia);
  switch (code) {
#ifndef SINGLE
    case 0u: return a + operand(ib);
    case 1u: return a - operand(ib);
    case 2u: return a * operand(ib);
    case 3u: case 9u: return exact_quotient(code == 9u ? 1.0 : a, code == 9u ? a : operand(ib));
    case 4u: return exact_pow(a, operand(ib));
    case 5u: return min_nan(a, operand(ib));
    case 6u: return max_nan(a, operand(ib));
    case 7u: return -a;
    case 8u: return abs(a);
    case 10u: return exact_root(a);
    case 11u: return exact_exp(a);
    case 12u: return exact_log(a);
    case 13u: return exact_erf(a);
    case 14u: return exact_tanh(a);
    case 15u: return exact_sin(a);
    case 16u: return exact_cos(a);
    case 17u: return floor(a);
    case 18u: return ceil(a);
    case 19u: return a > 20.0 ? a + exact_log1p(exact_exp(-a)) : exact_log1p(exact_exp(a));
    case 20u: return activate(ACTIVATION_RELU, a, 0.0, 0.0);
    case 21u: return exact_sigmoid(a);
    case 22u: return activate(ACTIVATION_HARD_SWISH, a, 0.0, 0.0);
    case 23u: return activate(ACTIVATION_GELU, a, 0.0, 0.0);
    case 24u: return activate(ACTIVATION_GELU_TANH, a, 0.0, 0.0);
    case 25u: return activate(ACTIVATION_CLIP, a, operand(ib), operand(ic));
    case 26u: return activate(ACTIVATION_HARD_SIGMOID, a, operand(ib), operand(ic));
    case 27u: return a < 0.0 ? operand(ib) * a : a;
    case 28u: return a * exact_sigmoid(operand(ib) * a);
    case 29u: return a < 0.0 ? operand(ib) * exact_expm1(a) : a;
#else
    case 64u: return exact_isnan(a) ? a : sign(a);
    case 65u: return exact_round(a);
    case 66u: return exact_tan(a);
    case 67u: return exact_asin(a);
    case 68u: return exact_acos(a);
    case 69u: return exact_atan(a);
    case 70u: return exact_sinh(a);
    case 71u: return exact_cosh(a);
    case 72u: return exact_asinh(a);
    case 73u: return exact_acosh(a);
    case 74u: return exact_atanh(a);
    case 75u: return a > operand(ib) || exact_isnan(a) ? a : 0.0; // ThresholdedRelu
    case 76u: return exact_quotient(a, 1.0 + abs(a)); // Softsign
    case 77u: return exact_mish(a);
    case 78u: return operand(ic) * (a >= 0.0 ? a : operand(ib) * exact_expm1(a)); // Selu
    case 79u: return a >= 0.0 ? a : operand(ib) * exact_expm1(exact_quotient(a, operand(ib))); // Celu
    case 80u: { // Shrink
      const float lambda = operand(ib), bias = operand(ic);
      return a < -lambda ? a + bias : (a > lambda ? a - bias : (exact_isnan(a) ? a : 0.0));
    }
    case 81u: return modulo(a, operand(ib));
    case 82u: return truncated_modulo(a, operand(ib));
#endif
    default: return a;
  }
}

#define STEP(k) \
  if (steps > uint(k)) v[8 + k] = apply(S##k & 255u, (S##k >> 8u) & 255u, (S##k >> 16u) & 255u, S##k >> 24u)

uint offset_of(uint i, uint index) {
  const uint mode = (modes >> (2u * i)) & 3u;
  if (mode == 0u)
    return index;
  if (mode == 1u)
    return 0u;
  uint at = 0u;
  for (uint axis = 0u; axis < rank; ++axis) {
    const uint size = dims[axis >> 2u][axis & 3u], next = index / size;
    const uint word = 8u * i + axis;
    at += (index - next * size) * strides[word >> 2u][word & 3u];
    index = next;
  }
  return at;
}

#define LOAD(i) \
  if (input_count > uint(i)) v[i] = float(x##i[offset_of(uint(i), index)])

void main() {
  const uint first = flat_group() * 256u * elements_each + gl_LocalInvocationID.x;
  [[unroll]] for (uint e = 0u; e < elements_each; ++e) {
    const uint index = first + e * 256u;
    if (index >= count)
      return;
    LOAD(0); LOAD(1); LOAD(2);
#if MAX_STEPS > 1
    LOAD(3); LOAD(4); LOAD(5); LOAD(6); LOAD(7);
#endif
    STEP(0);
#if MAX_STEPS >= 4
    STEP(1); STEP(2); STEP(3);
#endif
#if MAX_STEPS == 16
    STEP(4); STEP(5); STEP(6); STEP(7); STEP(8); STEP(9); STEP(10); STEP(11); STEP(12); STEP(13); STEP(14); STEP(15);
#endif
    y[index] = T(v[8u + steps - 1u]);
  }
}
