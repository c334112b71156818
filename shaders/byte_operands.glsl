// Bindings of a product of bytes, its operand B, and the epilogue: what gemm_operands.glsl is for floats, which says
// what an including kernel has declared. Depths are bytes, vectors 16 of them.
//
//   Σ (a − a_middle) (b − b_middle) = Σ a b − a_middle Σ b − b_middle (Σ a − depths · a_middle)
//
// What is beyond a window or the depth is a_middle in A, so that it adds nothing whatever is in B. Column sums of
// constant weights are given; the tiled kernel sums other columns, and rows if there is a b_middle. The cooperative one
// is for weights without.
#define SUM_RANGE vec2(product.alpha, product.beta)
#include "quantized_result.glsl"

layout(set = 0, binding = 1, std430) readonly buffer operand_a { uint8_t a[]; };
layout(set = 0, binding = 1, std430) readonly buffer operand_a_words { uint a_words[]; };
layout(set = 0, binding = 1, std430) readonly buffer operand_a_vectors { uvec4 a_vectors[]; };
layout(set = 0, binding = 2, std430) readonly buffer operand_b { uint8_t b[]; };
layout(set = 0, binding = 2, std430) readonly buffer operand_b_vectors { uvec4 b_vectors[]; };

#include "product_lines.glsl"

const uint WIDTH = 16;
#define TILE_VECTOR uvec4
#define SUM int
#ifdef BYTE_MATRICES
#define MATRIX_A SUBGROUP_MATRIX(TYPE_U8, matrix_lines, byte_depths, left_use)
#define MATRIX_B SUBGROUP_MATRIX(TYPE_U8, byte_depths, matrix_lines, right_use)
#define SUM_MATRIX SUBGROUP_MATRIX(TYPE_I32, matrix_lines, matrix_lines, sum_use)
spirv_instruction(id = 4459) SUM_MATRIX multiply_add(MATRIX_A a, MATRIX_B b, SUM_MATRIX c,
    spirv_literal uint which_are_signed);
#define MULTIPLY_MATRICES(a, b, c) multiply_add(a, b, c, 15) // all of them
#define FOUR_SUMS(bits) ivec4(bits)
#define JOINED 4
#define JOINED_SUMS ivec4
#define JOINED_PART(bits, part) ivec4(bits)
#endif

#ifdef BYTE_MATRICES
// A's bits are turned when they are stored to shared memory: to turn them before would be to wait for them.
#define A_STORED(vector) ((vector) ^ A_FLIP)
#define A_LOADED(bits) (bits)
#define a_fill (uint(a_zero_byte) * 0x01010101u) // what adds nothing, as it is loaded
#else
#define A_LOADED(bits) ((bits) ^ A_FLIP)
uint a_fill = uint(a_middle() & 255) * 0x01010101u;
#endif

/// B's depths [k, k + 16) of one column.
TILE_VECTOR b_load(line l, uint k, uint end) {
  if (!l.inside || k >= end)
    return TILE_VECTOR(0);
  if (B_MODE == depth_vectors)
    return b_vectors[(l.start + k) / WIDTH] ^ B_FLIP;
  uvec4 v;
  [[unroll]] for (uint word = 0; word < 4; ++word) {
    uint bits = 0;
    [[unroll]] for (uint byte = 0; byte < 4; ++byte) {
      const uint depth = k + word * 4 + byte;
      if (depth < end)
        bits |= ((uint(b[l.start + depth * product.b_depth]) ^ B_FLIP) & 255u) << (8 * byte);
    }
    v[word] = bits;
  }
  return v;
}

vec2 act_numbers() {
  return vec2(product.act_alpha, product.act_beta);
}

/// What the end of four neighbouring columns reads besides their sums, if they are written together.
struct joined_ends {
  column_terms terms;
  uint more;
};

/// Beyond the product: what is within it.
joined_ends joined_ends_of(uint m, uint n) {
  if (!VECTOR_OUT)
    return joined_ends(no_terms, 0);
  const uint row = min(m, product.m - 1), column = min(n, product.n - 4);
  return joined_ends(terms_of(column_of_bias(column)), residual_word(out_at(row, column)));
}

/// Writes four sums of neighbouring columns, together if that is allowed.
void emit_joined(uint m, uint n, ivec4 sums, joined_ends own) {
  if (m >= product.m || n >= product.n)
    return;
  if (VECTOR_OUT) {
    write_results(out_at(m, n), finished_columns(sums, own.terms, act_numbers()), own.more);
    return;
  }
  uvec4 at;
  vec4 y;
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const uint column = min(n + i, product.n - 1);
    at[i] = out_at(m, column);
    y[i] = finished_column(sums[i], column_of_bias(column), act_numbers());
  }
  write_each(at, y, min(product.n - n, 4));
}

#ifdef BYTE_MATRICES
/// The same of eight, which are written together.
struct vector_ends {
  column_terms low, high;
  uvec2 more;
};

vector_ends vector_ends_of(uint m, uint n) {
  if (!VECTOR_OUT)
    return vector_ends(no_terms, no_terms, uvec2(0));
  const uint row = min(m, product.m - 1), column = min(n, product.n - 8), own = column_of_bias(column);
  return vector_ends(terms_of(own), terms_of(own + 4), HAS_SUM ? residual_pairs[out_at(row, column) / 8] : uvec2(0));
}

/// Writes eight sums of neighbouring columns, together if that is allowed.
void emit_vector(uint m, uint n, int sums[8], vector_ends own) {
  const ivec4 low = ivec4(sums[0], sums[1], sums[2], sums[3]), high = ivec4(sums[4], sums[5], sums[6], sums[7]);
  if (!VECTOR_OUT || !QUANTIZES) {
    emit_joined(m, n, low, joined_ends(own.low, own.more.x));
    emit_joined(m, n + 4, high, joined_ends(own.high, own.more.y));
  } else if (m < product.m && n < product.n) {
    out_pairs[out_at(m, n) / 8] = uvec2(quantised_word(finished_columns(low, own.low, act_numbers()), own.more.x),
                                        quantised_word(finished_columns(high, own.high, act_numbers()), own.more.y));
  }
}
#else
#ifdef TROUPE_dot
#include "byte_dots.glsl"
#define dot_bytes dot_signed
#else
int dot_bytes(uint a, uint b) {
  const ivec4 product = signed_bytes(a) * signed_bytes(b);
  return product.x + product.y + product.z + product.w;
}
#endif

int dot_vectors(uvec4 a, uvec4 b) {
  return dot_bytes(a.x, b.x) + dot_bytes(a.y, b.y) + dot_bytes(a.z, b.z) + dot_bytes(a.w, b.w);
}

bool sums_columns() { return !A_CENTRED && !has(quantized_column_sums); }
const uvec4 ones = uvec4(0x01010101u);

/// The whole sum of row m and column n; `depths` are those that were multiplied.
int settled(int sum, int row_sum, int own_sum, uint n, uint depths) {
  if (sums_columns())
    sum -= a_middle() * own_sum;
  if (!B_CENTRED && n < product.n)
    sum -= b_middle(column_of_bias(n)) * (row_sum - int(depths) * a_middle());
  return sum;
}

#define SUM_BITS(sum) uint(sum)
#define MULTIPLY_ADD(r, c, sum) (sum + dot_vectors(r, c))
#define BEGIN_LINES \
  int row_sums[ROWS], own_sums[COLUMNS]; \
  [[unroll]] for (uint i = 0; i < ROWS; ++i) \
    row_sums[i] = 0; \
  [[unroll]] for (uint j = 0; j < COLUMNS; ++j) \
    own_sums[j] = 0;
#define NOTE_ROW(i, vector) \
  if (!B_CENTRED) \
    row_sums[i] += dot_vectors(vector, ones);
#define NOTE_COLUMN(j, vector) \
  if (sums_columns()) \
    own_sums[j] += dot_vectors(vector, ones);
#define SETTLED(i, j, sum) \
  settled(sum, row_sums[i], own_sums[j], first_n + x + j * ACROSS, \
          (end - begin + TILE_DEPTH - 1) / TILE_DEPTH * TILE_DEPTH)

void emit_vector(uint m, uint n, uvec4 sums) {
  emit_joined(m, n, ivec4(sums), joined_ends_of(m, n));
}
#endif
