#version 450
// Resize: every element of the output from the neighbours of its place in the input, along up to four merged axes.
//
// Along axis a an output index o is at x = o · slope + offset of the input, and is made of TAPS elements around it: 1
// (its own or the nearest), 2 (linear) or 4 (cubic). The nearest is ⌊(o · up + shift) / down⌋, in integers: the rule
// that chose them has checked that this is what the operator's float arithmetic gives. Indices are clamped to the axis.
// Variants: f32 f16 i8 u8
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/resize.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const bool VECTORS = false; // an invocation writes four neighbours
layout(constant_id = 1) const uint TAPS_0 = 1;
layout(constant_id = 2) const uint TAPS_1 = 1;
layout(constant_id = 3) const uint TAPS_2 = 1;
layout(constant_id = 4) const uint TAPS_3 = 1;

layout(set = 0, binding = 1, std430) readonly buffer input_buffer { T x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer output_buffer { T y[]; };
#ifdef T4
layout(set = 0, binding = 2, std430) writeonly buffer output_vector_buffer { T4 y4[]; };
#endif

/// Keys' cubic convolution.
float cubic_weight(float distance) {
  const float d = abs(distance);
  if (d <= 1.0)
    return ((cubic_a + 2.0) * d - (cubic_a + 3.0)) * d * d + 1.0;
  return d < 2.0 ? ((cubic_a * d - 5.0 * cubic_a) * d + 8.0 * cubic_a) * d - 4.0 * cubic_a : 0.0;
}

/// The taps of output index o along axis a: indices into the input and weights.
void taps_at(uint a, uint count_of_taps, uint o, out uvec4 at, out vec4 weight) {
  const int last = int(in_size[a]) - 1;
  at = uvec4(0);
  weight = vec4(0.0);
  if (count_of_taps == 1) {
    const int above = int(o) * up[a] + shift[a];
    at.x = uint(min(above < 0 ? 0 : above / down[a], last));
    weight.x = 1.0;
    return;
  }
  const float place = clamp(fma(float(o), slope[a], offset[a]), -4.0, float(last) + 5.0), low = floor(place);
  const float part = place - low;
  [[unroll]] for (uint i = 0; i < 4; ++i)
    if (i < count_of_taps) {
      const int position = int(low) + int(i) + 1 - int(count_of_taps / 2);
      at[i] = uint(clamp(position, 0, last));
      const float distance = float(int(i) + 1 - int(count_of_taps / 2)) - part;
      weight[i] = count_of_taps == 2 ? max(0.0, 1.0 - abs(distance)) : cubic_weight(distance);
    }
}

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint width = VECTORS ? out_size.w / 4 : out_size.w;
  const uint o3 = index % width * (VECTORS ? 4 : 1);
  uint rest = index / width;
  const uint o2 = rest % out_size.z;
  rest /= out_size.z;
  const uint o1 = rest % out_size.y, o0 = rest / out_size.y;
  uvec4 at0, at1, at2;
  vec4 weight0, weight1, weight2;
  taps_at(0, TAPS_0, o0, at0, weight0);
  taps_at(1, TAPS_1, o1, at1, weight1);
  taps_at(2, TAPS_2, o2, at2, weight2);
  const bool copies = TAPS_0 == 1 && TAPS_1 == 1 && TAPS_2 == 1 && TAPS_3 == 1;
  float results[4];
  [[unroll]] for (uint e = 0; e < (VECTORS ? 4 : 1); ++e) {
    uvec4 at3;
    vec4 weight3;
    taps_at(3, TAPS_3, o3 + e, at3, weight3);
    float sum = 0.0;
    [[unroll]] for (uint i = 0; i < TAPS_0; ++i)
      [[unroll]] for (uint j = 0; j < TAPS_1; ++j)
        [[unroll]] for (uint k = 0; k < TAPS_2; ++k) {
          const uint line = ((at0[i] * in_size.y + at1[j]) * in_size.z + at2[k]) * in_size.w;
          float line_sum = 0.0;
          [[unroll]] for (uint l = 0; l < TAPS_3; ++l) {
            const float value = float(x[line + at3[l]]);
            line_sum = copies ? value : (weight3[l] == 0.0 ? line_sum : fma(value, weight3[l], line_sum));
          }
          const float w = weight0[i] * weight1[j] * weight2[k];
          sum = copies ? line_sum : (w == 0.0 ? sum : fma(line_sum, w, sum));
        }
    results[e] = sum;
  }
#ifdef T4
  if (VECTORS) {
    y4[index] = T4(vec4(results[0], results[1], results[2], results[3]));
    return;
  }
#endif
  y[index] = T(results[0]);
}
