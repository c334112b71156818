#version 450
// Functions of one to three doubles that broadcast together: those that arithmetic, roots, exponentials and logarithms
// make. Constants: 0 see broadcast.glsl; 1 the function (scalar_codes.h); 2 the inputs. Operands after them are the
// block's numbers.
// Variants: f64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "broadcast.glsl"
#include "scalar.glsl"
#include "double_math.glsl"

layout(constant_id = 1) const uint code = 0u;
layout(constant_id = 2) const uint inputs = 1u;

layout(set = 0, binding = 1, std430) readonly buffer operand0 { T x0[]; };
layout(set = 0, binding = 2, std430) readonly buffer operand1 { T x1[]; };
layout(set = 0, binding = 3, std430) readonly buffer operand2 { T x2[]; };
layout(set = 0, binding = 4, std430) writeonly buffer target { T y[]; };

double least(double a, double b) { return exact_isnan(a) ? a : (exact_isnan(b) ? b : (a < b ? a : b)); }
double most(double a, double b) { return exact_isnan(a) ? a : (exact_isnan(b) ? b : (a > b ? a : b)); }

/// To the nearest integer, halves to the even one; keeps the sign of a zero.
double rounded(double x) {
  if (!(abs(x) < 4503599627370496.0lf))
    return x;
  const double low = floor(x), rest = x - low;
  const double r = rest < 0.5lf || (rest == 0.5lf && low == 2.0lf * floor(low * 0.5lf)) ? low : low + 1.0lf;
  return r == 0.0lf && (unpackDouble2x32(x).y >> 31) != 0u ? -0.0lf : r;
}

/// x limited to [low, high]; the type's lowest and largest number stand for NaN.
double limited(double x, double low, double high) {
  const double least = exact_isnan(low) ? -double_largest : low, most = exact_isnan(high) ? double_largest : high;
  const double raised = x < least ? least : x;
  return raised > most ? most : raised;
}

precise double apply(double a, double b, double c) {
  switch (code) {
    case scalar_add: return a + b;
    case scalar_subtract: return a - b;
    case scalar_multiply: return a * b;
    case scalar_divide: return a / b;
    case scalar_minimum: return inputs < 3u ? least(a, b) : least(least(a, b), c);
    case scalar_maximum: return inputs < 3u ? most(a, b) : most(most(a, b), c);
    case scalar_negate: return -a;
    case scalar_abs: return abs(a);
    case scalar_reciprocal: return 1.0lf / a;
    case scalar_sqrt: return a < 0.0lf ? double_nan : sqrt(a);
    case scalar_exp: return exact_exp(a);
    case scalar_log: return exact_log(a);
    case scalar_floor: return floor(a);
    case scalar_ceil: return ceil(a);
    case scalar_relu: return exact_isnan(a) ? a : (a < 0.0lf ? 0.0lf : a);
    case scalar_sigmoid: return 1.0lf / (1.0lf + exact_exp(-a));
    case scalar_clip: return limited(a, b, c);
    case scalar_leaky_relu: return a < 0.0lf ? a * b : a;
    case scalar_sign: return exact_isnan(a) || a == 0.0lf ? a : (a < 0.0lf ? -1.0lf : 1.0lf);
    case scalar_round: return rounded(a);
    case scalar_thresholded_relu: return a > b ? a : 0.0lf;
    case scalar_softsign: return a / (1.0lf + abs(a));
    case scalar_affine: return b * a + c;
    default: return a;
  }
}

void main() {
  const uint first = flat_group() * 256u * elements_each + gl_LocalInvocationID.x;
  [[unroll]] for (uint e = 0u; e < elements_each; ++e) {
    const uint index = first + e * 256u;
    if (index >= count)
      return;
    const double a = x0[offset_of(0u, index)];
    const double b = inputs > 1u ? x1[offset_of(1u, index)] : double(numbers[0][0]);
    const double c = inputs > 2u ? x2[offset_of(2u, index)] : double(numbers[0][2u - inputs]);
    y[index] = apply(a, b, c);
  }
}
