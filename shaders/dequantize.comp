#version 450
// DequantizeLinear: x = (y - zero point) · scale.
// Variants: u8_f32 i8_f32 u16_f32 i16_f32 i32_f32 u8_f16 i8_f16 u16_f16 i16_f16 i32_f16
#extension GL_GOOGLE_include_directive : require
#include "quantization.glsl"
#ifdef TROUPE_FROM_u8
#define SOURCE uint8_t
#elif defined(TROUPE_FROM_i8)
#define SOURCE int8_t
#elif defined(TROUPE_FROM_u16)
#define SOURCE uint16_t
#elif defined(TROUPE_FROM_i16)
#define SOURCE int16_t
#else
#define SOURCE int
#endif

layout(set = 0, binding = 1, std430) readonly buffer source { SOURCE x[]; };
layout(set = 0, binding = 2, std430) readonly buffer scale_buffer { REAL scales[]; };
layout(set = 0, binding = 3, std430) readonly buffer zero_buffer { SOURCE zeros[]; };
layout(set = 0, binding = 4, std430) writeonly buffer target { REAL y[]; };

void main() {
  const uint first = flat_group() * 256u * elements_each + gl_LocalInvocationID.x;
  [[unroll]] for (uint e = 0u; e < elements_each; ++e) {
    const uint index = first + e * 256u;
    if (index >= count)
      return;
    const uint at = scale_at(index);
    const int centred = int(x[index]) - (has_zero ? int(zeros[at]) : 0);
    y[index] = REAL(float(centred) * float(scales[at]));
  }
}
