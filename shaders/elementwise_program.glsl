// The program of an elementwise chain: its steps in specialisation constants, and how they are run over one element's
// operands v.
//
// Constants: 0 see broadcast.glsl; 1 elements of an invocation; 2 number of inputs; 3 number of steps; 4 … 19 the
// steps, a byte each for code, a, b, c. Operands of a step: 0 … 7 inputs, 8 … 23 results, 24 … 39 numbers. Drivers
// compile the whole of apply() for every step before they see that a step is constant, so shorter chains have variants
// of their own: TYPE_1, TYPE_4, TYPE_16. The codes that only single steps have are in TYPE_single. Variants of one step
// have three inputs, others eight.
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
#if MAX_STEPS > 1
#define BROADCAST_CHAIN
#endif
#include "broadcast.glsl"
#include "float_math.glsl"

layout(constant_id = 1) const uint each = 1u;
layout(constant_id = 2) const uint input_count = 1u;
layout(constant_id = 3) const uint steps = 1u;
layout(constant_id = 4) const uint S0 = 0u;
layout(constant_id = 5) const uint S1 = 0u;
layout(constant_id = 6) const uint S2 = 0u;
layout(constant_id = 7) const uint S3 = 0u;
layout(constant_id = 8) const uint S4 = 0u;
layout(constant_id = 9) const uint S5 = 0u;
layout(constant_id = 10) const uint S6 = 0u;
layout(constant_id = 11) const uint S7 = 0u;
layout(constant_id = 12) const uint S8 = 0u;
layout(constant_id = 13) const uint S9 = 0u;
layout(constant_id = 14) const uint S10 = 0u;
layout(constant_id = 15) const uint S11 = 0u;
layout(constant_id = 16) const uint S12 = 0u;
layout(constant_id = 17) const uint S13 = 0u;
layout(constant_id = 18) const uint S14 = 0u;
layout(constant_id = 19) const uint S15 = 0u;

float v[24]; // inputs, then results

/// By places that are known, so that numbers that never change are constants (vulkan/block_constants.hpp).
float number(uint i) {
  const vec4 four = i < 4u ? numbers[0] : i < 8u ? numbers[1] : i < 12u ? numbers[2] : numbers[3];
  return four[i & 3u];
}
float operand(uint i) {
  return i < 24u ? v[i] : number(i - 24u);
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

/// One function of scalar_codes.h. Precise: every step is rounded as the CPU rounds it, or a Floor after a product and
/// a sum would see another number.
precise float apply(uint code, uint ia, uint ib, uint ic) {
  const float a = operand(ia);
  switch (code) {
#ifndef SINGLE
    case scalar_add: return a + operand(ib);
    case scalar_subtract: return a - operand(ib);
    case scalar_multiply: return a * operand(ib);
    case scalar_divide: case scalar_reciprocal: {
      const bool divides = code == scalar_divide;
      return exact_quotient(divides ? a : 1.0, divides ? operand(ib) : a);
    }
    case scalar_pow: return exact_pow(a, operand(ib));
    case scalar_minimum: return min_nan(a, operand(ib));
    case scalar_maximum: return max_nan(a, operand(ib));
    case scalar_negate: return -a;
    case scalar_abs: return abs(a);
    case scalar_sqrt: return exact_root(a);
    case scalar_exp: return exact_exp(a);
    case scalar_log: return exact_log(a);
    case scalar_erf: return exact_erf(a);
    case scalar_sin: return exact_sin(a);
    case scalar_cos: return exact_cos(a);
    case scalar_floor: return floor(a);
    case scalar_ceil: return ceil(a);
    case scalar_softplus: return (a > 0.0 ? a : 0.0) + exact_log1p(exact_exp(-abs(a)));
    case scalar_elu: return a < 0.0 ? operand(ib) * exact_expm1(a) : a;
    default: return activate(code, a, operand(ib), operand(ic));
#else
    case scalar_sign: return exact_isnan(a) ? a : sign(a);
    case scalar_round: return exact_round(a);
    case scalar_tan: return exact_tan(a);
    case scalar_asin: return exact_asin(a);
    case scalar_acos: return exact_acos(a);
    case scalar_atan: return exact_atan(a);
    case scalar_sinh: return exact_sinh(a);
    case scalar_cosh: return exact_cosh(a);
    case scalar_asinh: return exact_asinh(a);
    case scalar_acosh: return exact_acosh(a);
    case scalar_atanh: return exact_atanh(a);
    case scalar_thresholded_relu: return a > operand(ib) ? a : 0.0;
    case scalar_softsign: return exact_quotient(a, 1.0 + abs(a));
    case scalar_mish: return exact_mish(a);
    case scalar_selu: return operand(ic) * (a >= 0.0 ? a : operand(ib) * exact_expm1(a));
    case scalar_celu: return a >= 0.0 ? a : operand(ib) * exact_expm1(exact_quotient(a, operand(ib)));
    case scalar_shrink: {
      const float lambda = operand(ib), bias = operand(ic);
      return a < -lambda ? a + bias : (a > lambda ? a - bias : 0.0);
    }
    case scalar_modulo: return modulo(a, operand(ib));
    case scalar_truncated_modulo: return truncated_modulo(a, operand(ib));
    case scalar_affine: return operand(ib) * a + operand(ic);
    case scalar_scaled_tanh: return operand(ib) * exact_tanh(operand(ic) * a);
    default: return a;
#endif
  }
}

#define STEP(k) \
  if (steps > uint(k)) v[8 + k] = apply(S##k & 255u, (S##k >> 8u) & 255u, (S##k >> 16u) & 255u, S##k >> 24u)

#if MAX_STEPS == 16
#define RUN_STEPS \
  STEP(0); STEP(1); STEP(2); STEP(3); STEP(4); STEP(5); STEP(6); STEP(7); STEP(8); STEP(9); STEP(10); STEP(11); \
  STEP(12); STEP(13); STEP(14); STEP(15)
#elif MAX_STEPS == 4
#define RUN_STEPS STEP(0); STEP(1); STEP(2); STEP(3)
#else
#define RUN_STEPS STEP(0)
#endif
/// What the program gives after RUN_STEPS.
float last_result() { return v[8u + steps - 1u]; }
