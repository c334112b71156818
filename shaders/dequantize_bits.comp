#version 450
// DequantizeLinear of 8-bit floats and of 4 bits, two elements a byte: x = (y - zero point) · scale.
// Constants: 0, 1 see quantization.glsl; 2 the type (parameters/element_type.h).
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "quantization.glsl"
#include "small_floats.glsl"

layout(constant_id = 2) const uint type = type_e4m3fn;

layout(set = 0, binding = 1, std430) readonly buffer source { uint8_t x[]; };
layout(set = 0, binding = 2, std430) readonly buffer scale_buffer { REAL scales[]; };
layout(set = 0, binding = 3, std430) readonly buffer zero_buffer { uint8_t zeros[]; };
layout(set = 0, binding = 4, std430) writeonly buffer target { REAL y[]; };

#define ELEMENT(name, buffer_of)                                                  \
  float name(uint i) {                                                            \
    if (type != type_int4 && type != type_uint4)                                  \
      return float_of_float8(type, uint(buffer_of[i]));                           \
    const uint bits = (uint(buffer_of[i >> 1]) >> (4u * (i & 1u))) & 15u;         \
    return type == type_int4 ? float(int(bits << 28) >> 28) : float(bits);        \
  }
ELEMENT(element_at, x)
ELEMENT(zero_at, zeros)

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint at = scale_at(index);
  y[index] = REAL((element_at(index) - (has_zero ? zero_at(at) : 0.0)) * float(scales[at]));
}
