#version 450
// QuantizeLinear to 8-bit floats, x / scale + zero point rounded as their format says, and to 4 bits, two elements a
// byte, as quantize.comp does it. Constants: 0, 1 see quantization.glsl; 2 the type (parameters/element_type.h); 3
// whether a float8 saturates.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "quantization.glsl"
#include "small_floats.glsl"

layout(constant_id = 2) const uint type = type_e4m3fn;
layout(constant_id = 3) const bool saturates = true;

layout(set = 0, binding = 1, std430) readonly buffer source { REAL x[]; };
layout(set = 0, binding = 2, std430) readonly buffer scale_buffer { REAL scales[]; };
layout(set = 0, binding = 3, std430) readonly buffer zero_buffer { uint8_t zeros[]; };
layout(set = 0, binding = 4, std430) writeonly buffer target { uint8_t y[]; };

float quotient_at(uint index, uint at) {
  const float quotient = exact_quotient(float(x[index]), float(scales[at]));
#ifdef TROUPE_f16
  return rounded_to_half(quotient);
#else
  return quotient;
#endif
}

uint nibble_at(uint index) {
  const uint at = scale_at(index), packed = has_zero ? (uint(zeros[at >> 1]) >> (4u * (at & 1u))) & 15u : 0u;
  const bool is_signed = type == type_int4;
  const float zero = is_signed ? float(int(packed << 28) >> 28) : float(packed), low = is_signed ? -8.0 : 0.0;
  const float high = is_signed ? 7.0 : 15.0, v = exact_round(quotient_at(index, at)) + zero;
  return uint(int(v > low ? (v < high ? v : high) : low)) & 15u;
}

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (type == type_int4 || type == type_uint4) {
    if (index < (count + 1u) / 2u)
      y[index] = uint8_t(nibble_at(2u * index) | (2u * index + 1u < count ? nibble_at(2u * index + 1u) << 4 : 0u));
  } else if (index < count) {
    const uint at = scale_at(index);
    const float zero = has_zero ? float_of_float8(type, uint(zeros[at])) : 0.0;
    y[index] = uint8_t(float8_of_float(type, quotient_at(index, at) + zero, saturates));
  }
}
