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

#define A_STORED(vector) vector // as shared memory has what was loaded of A

#ifdef EIGHT_WIDE
VECTOR pack_vector(float16_t e[8]) {
  return uvec4(packFloat2x16(f16vec2(e[0], e[1])), packFloat2x16(f16vec2(e[2], e[3])),
               packFloat2x16(f16vec2(e[4], e[5])), packFloat2x16(f16vec2(e[6], e[7])));
}
const uint WIDTH = 8;
#define TILE_VECTOR uvec4
#define ELEMENT float16_t // of a vector that a kernel gathers
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

/// The bias of one element, or 0 if there is none.
float bias_of(uint m, uint n) {
  return HAS_BIAS ? float(bias[m * product.bias_row + column_of_bias(n) * product.bias_column]) : 0.0;
}

/// The epilogue of one element with its bias; `more` is the residual, or 0 if there is none.
float finish(float sum, float own_bias, float more) {
  float value = product.alpha * sum;
  if (HAS_BIAS)
    value += product.beta * own_bias;
  return activate(ACTIVATION, HAS_RESIDUAL ? value + more : value, product.act_alpha, product.act_beta);
}

uint scratch_at(uint m, uint n) {
  return ((split_index() * product.batches + batch_index()) * product.m + m) * product.n + n;
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
  result[at] = T(finish(sum, bias_of(m, n), HAS_RESIDUAL ? float(residual[at]) : 0.0));
}

#ifdef EIGHT_WIDE
const bool READS_ENDS = VECTOR_OUT && !IS_SPLIT;

/// What the epilogue of eight neighbouring columns reads besides their sums, if they are written as a vector.
struct vector_ends {
  float bias[8];
  uvec4 more;
};

/// Beyond the product: what is within it.
vector_ends vector_ends_of(uint m, uint n) {
  const uint row = min(m, product.m - 1), column = min(n, product.n - 8);
  vector_ends own;
  [[unroll]] for (uint i = 0; i < 8; ++i)
    own.bias[i] = READS_ENDS ? bias_of(row, column + i) : 0.0;
  own.more = READS_ENDS && HAS_RESIDUAL ? residual_vectors[out_at(row, column) / 8] : uvec4(0);
  return own;
}
#define SUM_VECTOR float[8]
#define VECTOR_ENDS , vector_ends own
#else
#define SUM_VECTOR vec4
#define VECTOR_ENDS
#endif

/// Writes WIDTH sums of neighbouring columns, in vectors if that is allowed.
void emit_vector(uint m, uint n, SUM_VECTOR sums VECTOR_ENDS) {
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
  float16_t e[8];
  [[unroll]] for (uint i = 0; i < 8; ++i)
    e[i] = float16_t(finish(sums[i], own.bias[i], unpackHalf2x16(own.more[i / 2])[i % 2]));
  result_vectors[at] = pack_vector(e);
#else
  const vec4 more = HAS_RESIDUAL ? vec4(residual_vectors[at]) : vec4(0);
  vec4 e;
  [[unroll]] for (uint i = 0; i < 4; ++i)
    e[i] = finish(sums[i], bias_of(m, n + i), more[i]);
  result_vectors[at] = VECTOR(e);
#endif
}

#ifdef EIGHT_WIDE
layout(set = 0, binding = 4, std430) readonly buffer residual_pair_buffer { uint residual_pairs[]; };
layout(set = 0, binding = 5, std430) writeonly buffer output_pair_buffer { uint result_pairs[]; };
layout(set = 0, binding = 5, std430) writeonly buffer scratch_pair_buffer { vec2 partial_pairs[]; };

/// What the epilogue of two neighbouring columns reads besides their sums, if they are written together.
struct joined_ends {
  vec2 bias;
  uint more;
};

joined_ends joined_ends_of(uint m, uint n) {
  if (!READS_ENDS)
    return joined_ends(vec2(0), 0);
  const uint row = min(m, product.m - 1), column = min(n, product.n - 2);
  return joined_ends(vec2(bias_of(row, column), bias_of(row, column + 1)),
      HAS_RESIDUAL ? residual_pairs[out_at(row, column) / 2] : 0);
}

/// Writes two sums of neighbouring columns, together if that is allowed.
void emit_joined(uint m, uint n, vec2 sums, joined_ends own) {
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
  const vec2 more = unpackHalf2x16(own.more);
  result_pairs[out_at(m, n) / 2] = packFloat2x16(f16vec2(finish(sums.x, own.bias.x, more.x),
      finish(sums.y, own.bias.y, more.y)));
}
#endif
