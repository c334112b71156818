// Bindings of a matrix product, its operand B, and the epilogue. See gemm.glsl.
//
// The including kernel has declared the parameters and these functions' inputs:
//   uint batch_of_b(), first element of B in this group's batch; uint column_of_bias(n);
//   uint out_at(m, n), where C[m, n] of this group's batch goes.
layout(set = 0, binding = 1, std430) readonly buffer operand_a { T a[]; };
layout(set = 0, binding = 1, std430) readonly buffer operand_a_vectors { VECTOR a_vectors[]; };
layout(set = 0, binding = 2, std430) readonly buffer operand_b { T b[]; };
layout(set = 0, binding = 2, std430) readonly buffer operand_b_vectors { VECTOR b_vectors[]; };
layout(set = 0, binding = 3, std430) readonly buffer bias_buffer { T bias[]; };
layout(set = 0, binding = 4, std430) readonly buffer residual_buffer { T residual[]; };
layout(set = 0, binding = 5, std430) writeonly buffer output_buffer { T result[]; };
layout(set = 0, binding = 5, std430) writeonly buffer scratch_buffer { float partial[]; };
layout(set = 0, binding = 4, std430) readonly buffer residual_vector_buffer { VECTOR residual_vectors[]; };
layout(set = 0, binding = 5, std430) writeonly buffer output_vector_buffer { VECTOR result_vectors[]; };
layout(set = 0, binding = 5, std430) writeonly buffer scratch_vector_buffer { vec4 partial_vectors[]; };

#include "product_lines.glsl"

#ifdef EIGHT_WIDE
VECTOR pack_vector(float16_t e[8]) {
  return uvec4(packFloat2x16(f16vec2(e[0], e[1])), packFloat2x16(f16vec2(e[2], e[3])),
               packFloat2x16(f16vec2(e[4], e[5])), packFloat2x16(f16vec2(e[6], e[7])));
}
const uint WIDTH = 8;
#define TILE_VECTOR uvec4
#define ELEMENT float16_t // of a vector that a kernel gathers
#define MATRIX_A fcoopmatNV<16, gl_ScopeSubgroup, 16, 16>
#define MATRIX_B MATRIX_A
#define SUM_MATRIX fcoopmatNV<32, gl_ScopeSubgroup, 16, 16>
#define SUM float
#define FOUR_SUMS(bits) uintBitsToFloat(bits)
#define JOINED 2 // columns that an invocation adds up if subgroups share a tile's depths
#define JOINED_SUMS vec2
#define JOINED_PART(bits, part) uintBitsToFloat(part % 2 == 0 ? bits.xy : bits.zw)
#else
const uint WIDTH = 4;
#define TILE_VECTOR vec4
#define ELEMENT float
#define SUM float
#define SUM_BITS(sum) sum // as elements of a TILE_VECTOR
#define MULTIPLY_ADD(r, c, sum) fma(r.x, c.x, fma(r.y, c.y, fma(r.z, c.z, fma(r.w, c.w, sum))))
#define BEGIN_LINES
#define NOTE_ROW(i, vector)
#define NOTE_COLUMN(j, vector)
#define SETTLED(i, j, sum) sum
#endif

/// B's depths [k, k + WIDTH) of one column; with line_vectors, WIDTH columns at depth k.
TILE_VECTOR b_load(line l, uint k, uint end) {
  if (!l.inside || k >= end)
    return TILE_VECTOR(0);
  if (B_MODE == depth_vectors)
    return TILE_VECTOR(b_vectors[(l.start + k) / WIDTH]);
  if (B_MODE == line_vectors)
    return TILE_VECTOR(b_vectors[(l.start + k * product.b_depth) / WIDTH]);
#ifdef EIGHT_WIDE
  float16_t e[8];
  [[unroll]] for (uint i = 0; i < 8; ++i)
    e[i] = k + i < end ? b[l.start + (k + i) * product.b_depth] : float16_t(0);
  return pack_vector(e);
#else
  vec4 e = vec4(0);
  [[unroll]] for (uint i = 0; i < 4; ++i)
    if (k + i < end)
      e[i] = float(b[l.start + (k + i) * product.b_depth]);
  return e;
#endif
}

/// The epilogue of one element; `more` is the residual, or 0 if there is none.
float finish(uint m, uint n, float sum, float more) {
  float value = product.alpha * sum;
  if (HAS_BIAS)
    value += product.beta * float(bias[m * product.bias_row + column_of_bias(n) * product.bias_column]);
  return activate(ACTIVATION, HAS_RESIDUAL ? value + more : value, product.act_alpha, product.act_beta);
}

uint scratch_at(uint m, uint n) {
  return ((gl_WorkGroupID.z % product.splits * product.batches + batch_index()) * product.m + m) * product.n + n;
}

/// Writes one sum.
void emit(uint m, uint n, float sum) {
  if (m >= product.m || n >= product.n)
    return;
  if (IS_SPLIT) {
    partial[scratch_at(m, n)] = sum;
    return;
  }
  const uint at = out_at(m, n);
  result[at] = T(finish(m, n, sum, HAS_RESIDUAL ? float(residual[at]) : 0.0));
}

#ifdef EIGHT_WIDE
#define SUM_VECTOR float[8]
#else
#define SUM_VECTOR vec4
#endif

/// Writes WIDTH sums of neighbouring columns, in vectors if that is allowed.
void emit_vector(uint m, uint n, SUM_VECTOR sums) {
  if (m >= product.m || n >= product.n)
    return;
  if (!VECTOR_OUT) {
    for (uint i = 0; i < WIDTH; ++i)
      emit(m, n + i, sums[i]);
    return;
  }
  if (IS_SPLIT) {
    [[unroll]] for (uint i = 0; i < WIDTH; i += 4)
      partial_vectors[(scratch_at(m, n) + i) / 4] = vec4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
    return;
  }
  const uint at = out_at(m, n) / WIDTH;
#ifdef EIGHT_WIDE
  const uvec4 more = HAS_RESIDUAL ? residual_vectors[at] : uvec4(0);
  float16_t e[8];
  [[unroll]] for (uint i = 0; i < 8; ++i)
    e[i] = float16_t(finish(m, n + i, sums[i], unpackHalf2x16(more[i / 2])[i % 2]));
  result_vectors[at] = pack_vector(e);
#else
  const vec4 more = HAS_RESIDUAL ? vec4(residual_vectors[at]) : vec4(0);
  vec4 e;
  [[unroll]] for (uint i = 0; i < 4; ++i)
    e[i] = finish(m, n + i, sums[i], more[i]);
  result_vectors[at] = VECTOR(e);
#endif
}

#ifdef EIGHT_WIDE
layout(set = 0, binding = 4, std430) readonly buffer residual_pair_buffer { uint residual_pairs[]; };
layout(set = 0, binding = 5, std430) writeonly buffer output_pair_buffer { uint result_pairs[]; };
layout(set = 0, binding = 5, std430) writeonly buffer scratch_pair_buffer { vec2 partial_pairs[]; };

/// Writes two sums of neighbouring columns, together if that is allowed.
void emit_joined(uint m, uint n, vec2 sums) {
  if (m >= product.m || n >= product.n)
    return;
  if (!VECTOR_OUT) {
    emit(m, n, sums.x);
    emit(m, n + 1, sums.y);
    return;
  }
  if (IS_SPLIT) {
    partial_pairs[scratch_at(m, n) / 2] = sums;
    return;
  }
  const uint at = out_at(m, n) / 2;
  const vec2 more = HAS_RESIDUAL ? unpackHalf2x16(residual_pairs[at]) : vec2(0);
  result_pairs[at] = packFloat2x16(f16vec2(finish(m, n, sums.x, more.x), finish(m, n + 1, sums.y, more.y)));
}
#endif
