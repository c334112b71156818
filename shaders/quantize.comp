#version 450
// QuantizeLinear: y = saturate(⌊x / scale⌉ + zero point), halves to even; NaN gives the low end.
// Variants: f32_u8 f32_i8 f32_u16 f32_i16 f16_u8 f16_i8 f16_u16 f16_i16
#extension GL_GOOGLE_include_directive : require
#include "quantization.glsl"
#ifdef TROUPE_TO_u8
#define TARGET uint8_t
#define LOWEST 0.0
#define HIGHEST 255.0
#elif defined(TROUPE_TO_u16)
#define TARGET uint16_t
#define LOWEST 0.0
#define HIGHEST 65535.0
#elif defined(TROUPE_TO_i16)
#define TARGET int16_t
#define LOWEST -32768.0
#define HIGHEST 32767.0
#else
#define TARGET int8_t
#define LOWEST -128.0
#define HIGHEST 127.0
#endif

layout(set = 0, binding = 1, std430) readonly buffer source { REAL x[]; };
layout(set = 0, binding = 2, std430) readonly buffer scale_buffer { REAL scales[]; };
layout(set = 0, binding = 3, std430) readonly buffer zero_buffer { TARGET zeros[]; };
layout(set = 0, binding = 4, std430) writeonly buffer target { TARGET y[]; };

void main() {
  const uint first = flat_group() * 256u * elements_each + gl_LocalInvocationID.x;
  [[unroll]] for (uint e = 0u; e < elements_each; ++e) {
    const uint index = first + e * 256u;
    if (index >= count)
      return;
    const uint at = scale_at(index);
    float quotient = exact_quotient(float(x[index]), float(scales[at]));
#ifdef TROUPE_FROM_f16 // in the scale's precision: rounded before it is rounded to an integer
    quotient = rounded_to_half(quotient);
#endif
    const float v = exact_round(quotient) + (has_zero ? float(zeros[at]) : 0.0);
    y[index] = TARGET(int(v > LOWEST ? (v < HIGHEST ? v : HIGHEST) : LOWEST));
  }
}
