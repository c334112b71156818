#version 450
// A chain of float functions over operands that broadcast together: one step for a lone Relu or Add, up to 16 for a
// fused chain (src/ops/composed/fused_elementwise.hpp). The chain is in specialisation constants, so the driver
// compiles straight code: see elementwise_program.glsl. Inputs that are absent are bound to the first one.
// Variants: f32_single f32_1 f32_4 f32_16 f16_single f16_1 f16_4 f16_16
#extension GL_GOOGLE_include_directive : require
#if defined(TROUPE_f32_single) || defined(TROUPE_f32_1) || defined(TROUPE_f32_4) || defined(TROUPE_f32_16)
#define TROUPE_f32 1
#else
#define TROUPE_f16 1
#endif
#include "types.glsl"
#include "elementwise_program.glsl"

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

#define LOAD(i) \
  if (input_count > uint(i)) v[i] = float(x##i[offset_of(uint(i), index)])

void main() {
  const uint first = flat_group() * 256u * each + gl_LocalInvocationID.x;
  [[unroll]] for (uint e = 0u; e < each; ++e) {
    const uint index = first + e * 256u;
    if (index >= count)
      return;
    LOAD(0); LOAD(1); LOAD(2);
#if MAX_STEPS > 1
    LOAD(3); LOAD(4); LOAD(5); LOAD(6); LOAD(7);
#endif
    RUN_STEPS;
    y[index] = T(last_result());
  }
}
