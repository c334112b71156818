#version 450
// Rotary position embedding (RoPE): pairs of elements of every head are rotated by angles that depend on the position.
//
// An invocation rotates one pair (four neighbouring ones as VECTORS) or copies one element that is not rotated. It
// reads both elements before it writes them, so that Y may be X.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/rotary.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const bool VECTORS = false;     // of pairs (i, i + pairs)
layout(constant_id = 1) const bool INTERLEAVED = false; // pairs (2 i, 2 i + 1)
layout(constant_id = 2) const bool POSITIONS = false;   // positions are read, and say which row of the tables

layout(set = 0, binding = 1, std430) readonly buffer input_buffer { T x[]; };
layout(set = 0, binding = 1, std430) readonly buffer input_vector_buffer { T4 x4[]; };
layout(set = 0, binding = 2, std430) readonly buffer cos_buffer { T cosines[]; };
layout(set = 0, binding = 2, std430) readonly buffer cos_vector_buffer { T4 cosines4[]; };
layout(set = 0, binding = 3, std430) readonly buffer sin_buffer { T sines[]; };
layout(set = 0, binding = 3, std430) readonly buffer sin_vector_buffer { T4 sines4[]; };
layout(set = 0, binding = 4, std430) readonly buffer position_buffer { uvec2 positions[]; }; // 64-bit integers
layout(set = 0, binding = 5, std430) writeonly buffer output_buffer { T y[]; };
layout(set = 0, binding = 5, std430) writeonly buffer output_vector_buffer { T4 y4[]; };

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint head = index / per_head, p = (index - head * per_head) * (VECTORS ? 4 : 1);
  const uint outer = head / inner, b = outer / middle;
  const uint s = bshd != 0 ? outer - b * middle : head - outer * inner;
  const uint base = head * width;
  if (p >= pairs) {
    const uint at = base + 2 * pairs + p - pairs;
    y[at] = x[at];
    return;
  }
  uint row = s * table_row, cos_at = b * cos_batch + row, sin_at = b * sin_batch + row;
  if (POSITIONS) {
    row = min(positions[b * (bshd != 0 ? middle : inner) + s].x, table_rows - 1) * table_row;
    cos_at = row;
    sin_at = row;
  }
  const uint first = base + (INTERLEAVED ? 2 * p : p), other = INTERLEAVED ? first + 1 : first + pairs;
  if (VECTORS) {
    const vec4 low = vec4(x4[first / 4]), high = vec4(x4[other / 4]);
    const vec4 cos_low = vec4(cosines4[(cos_at + p) / 4]), cos_high = vec4(cosines4[(cos_at + p + second) / 4]);
    const vec4 sin_low = vec4(sines4[(sin_at + p) / 4]), sin_high = vec4(sines4[(sin_at + p + second) / 4]);
    y4[first / 4] = T4(low * cos_low - high * sin_low);
    y4[other / 4] = T4(high * cos_high + low * sin_high);
    return;
  }
  const float low = float(x[first]), high = float(x[other]);
  const float cos_low = float(cosines[cos_at + p]), cos_high = float(cosines[cos_at + p + second]);
  const float sin_low = float(sines[sin_at + p]), sin_high = float(sines[sin_at + p + second]);
  y[first] = T(low * cos_low - high * sin_low);
  y[other] = T(high * cos_high + low * sin_high);
}
