// Products of float32 by matrix units of float16: the two pieces of an element, and the sums of their products. See
// gemm_cooperative.glsl.
//
// An element of a tile, scaled by a power of two, is high + low / 2^11: its first 11 bits, and what is left of it. A
// product is high · high + (high · low + low · high) / 2^11; what is left out, low · low and the last bit of a low, is
// less than 2^-22 of it (Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing
// the FP32 theoretical peak performance", 2022, https://arxiv.org/abs/2203.03341). Matrix units do not round sums to
// nearest, which loses more the more they add: they add the depths of two steps, and small products of one matrix; all
// that is added in float32.
//
// Each row of A and each column of B, a *line*, has a scale, which makes the largest element of its first step about
// 2^7: what is above 2^-21 of that has all its bits, and what is smaller is right to within 2^-43 of it. If what comes
// later does not suit a line's scale, the group multiplies its tile once more, with scales for what it has seen. What
// is not finite has ±1 as high and itself as low, so that its products are what they are in float32, but for what is
// below 2^-32 of its line: infinity times that is NaN.
float16_t half_type() { return float16_t(0); } // declares the type
spirv_instruction(id = 129) SUM_MATRIX add_sums(SUM_MATRIX a, SUM_MATRIX b);
spirv_instruction(id = 143) SUM_MATRIX times(SUM_MATRIX a, float factor);

const float LOW_SCALE = 2048.0;
// Exponents of a line's largest element, scaled: as the scale is chosen, and at most; at least, and the scale's own, if
// its first step had nothing.
const int USUAL = 7, MOST = 14, LEAST = 0, UNKNOWN = 6;
const int HIGHEST = 126; // exponent of a scale

// By line, those of A before those of B: its largest element that the group has seen, as bits without sign, and its
// scale's exponent.
const uint LINES = TILE_M + TILE_N;
shared uint line_largest[LINES];
shared int line_exponent[LINES];
shared bool is_wrong;

const uint infinity_bits = 0x7f800000u;

/// What an invocation knows of a slot's lines: of four with line_vectors, else of one, which is x.
struct slot_lines {
  vec4 factor;   // the scales
  uvec4 largest; // elements it has seen, as bits without sign
};
slot_lines a_own[A_SLOTS], b_own[B_SLOTS];

int exponent_of(uint bits) { return int(bits >> 23) - 127; }

/// 2^exponent, of a normal number.
float power_of_two(int exponent) { return uintBitsToFloat(uint(exponent + 127) << 23); }

uint largest_of(uvec4 sizes) { return max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)); }

/// Four elements as bits without sign, 0 for what is not finite.
uvec4 finite_sizes(vec4 x) {
  const uvec4 sizes = floatBitsToUint(x) & 0x7fffffffu;
  return mix(uvec4(0), sizes, lessThan(sizes, uvec4(infinity_bits)));
}

void note(uvec4 sizes, uint mode, inout slot_lines own) {
  if (mode == line_vectors)
    own.largest = max(own.largest, sizes);
  else
    own.largest.x = max(own.largest.x, largest_of(sizes));
}

uvec2 halves(vec4 x) { return uvec2(packHalf2x16(x.xy), packHalf2x16(x.zw)); }

/// 0, which no compiler knows: squares are 0, 1 or 4 modulo 8.
uint unknown_zero() { return uint(gl_NumWorkGroups.x * gl_NumWorkGroups.x == 5u); }

/// What the halves are. The driver would take a conversion to them and back for nothing, were there not a zero that it
/// does not know.
vec4 floats(uvec2 halves) {
  const uvec2 bits = halves ^ unknown_zero();
  return vec4(unpackHalf2x16(bits.x), unpackHalf2x16(bits.y));
}

void split(vec4 x, uint mode, inout slot_lines own, out uvec2 high, out uvec2 low) {
  const vec4 scaled = x * (mode == line_vectors ? own.factor : own.factor.xxxx);
  high = halves(scaled);
  const vec4 rest = (scaled - floats(high)) * LOW_SCALE;
  low = halves(rest);
  const uvec4 bits = floatBitsToUint(x), sizes = bits & 0x7fffffffu;
  if (largest_of(sizes) < infinity_bits) {
    note(sizes, mode, own);
    return;
  }
  const bvec4 finite = lessThan(sizes, uvec4(infinity_bits));
  high = halves(mix(uintBitsToFloat(bits & 0x80000000u | floatBitsToUint(1.0)), scaled, finite));
  low = halves(mix(x, rest, finite));
  note(finite_sizes(x), mode, own);
}

#define STORE(tile, at, size, vector, mode, own) \
  { \
    uvec2 high, low; \
    split(vector, mode, own, high, low); \
    tile[at] = high; \
    tile[at + size] = low; \
  }

/// Tells the group what this invocation has seen of a slot's lines, of which `line` is the first.
void tell(uint line, uint mode, slot_lines own) {
  atomicMax(line_largest[line], own.largest.x);
  if (mode == line_vectors)
    [[unroll]] for (uint i = 1; i < WIDTH; ++i)
      atomicMax(line_largest[line + i], own.largest[i]);
}

uint a_line_of(uint slot) { return slot_at(slot, TILE_M, A_MODE, A_PITCH).x; }
uint b_line_of(uint slot) { return TILE_M + slot_at(slot, TILE_N, B_MODE, B_PITCH).x; }

void tell_all() {
  [[unroll]] for (uint s = 0; s < A_SLOTS; ++s)
    tell(a_line_of(s), A_MODE, a_own[s]);
  [[unroll]] for (uint s = 0; s < B_SLOTS; ++s)
    tell(b_line_of(s), B_MODE, b_own[s]);
  barrier();
}

void clear_lines() {
  [[unroll]] for (uint s = 0; s < A_SLOTS; ++s)
    a_own[s].largest = uvec4(0);
  [[unroll]] for (uint s = 0; s < B_SLOTS; ++s)
    b_own[s].largest = uvec4(0);
  for (uint line = gl_LocalInvocationID.x; line < LINES; line += THREADS)
    line_largest[line] = 0;
  barrier();
}

vec4 factors_of(uint line, uint mode) {
  vec4 factor = vec4(power_of_two(line_exponent[line]));
  if (mode == line_vectors)
    [[unroll]] for (uint i = 1; i < WIDTH; ++i)
      factor[i] = power_of_two(line_exponent[line + i]);
  return factor;
}

/// Chooses scales for what the group has seen. For all of its invocations; none waits for others of its subgroup by
/// operations of subgroups, since these need not be together after loads that lines beyond the product skip.
void choose_scales() {
  tell_all();
  if (gl_LocalInvocationID.x == 0)
    is_wrong = false;
  for (uint line = gl_LocalInvocationID.x; line < LINES; line += THREADS) {
    const uint largest = line_largest[line];
    line_exponent[line] = largest == 0 ? UNKNOWN : min(USUAL - exponent_of(largest), HIGHEST);
  }
  barrier();
  [[unroll]] for (uint s = 0; s < A_SLOTS; ++s)
    a_own[s].factor = factors_of(a_line_of(s), A_MODE);
  [[unroll]] for (uint s = 0; s < B_SLOTS; ++s)
    b_own[s].factor = factors_of(b_line_of(s), B_MODE);
}

/// Whether elements did not suit their scales, which suit them if chosen again. For all of the group's invocations.
bool did_not_suit() {
  tell_all();
  for (uint line = gl_LocalInvocationID.x; line < LINES; line += THREADS) {
    const int exponent = line_exponent[line], scaled = exponent_of(line_largest[line]) + exponent;
    if (line_largest[line] != 0 && (scaled > MOST || scaled < LEAST && exponent < HIGHEST))
      is_wrong = true;
  }
  barrier();
  return is_wrong;
}

// What gemm_cooperative.glsl does besides. Splitting has registers for one step that is on its way.
#define CLEAR_LINES clear_lines();
#define CHOOSE_SCALES \
  [[unroll]] for (uint s = 0; s < A_SLOTS; ++s) \
    note(finite_sizes(a_even[s]), A_MODE, a_own[s]); \
  [[unroll]] for (uint s = 0; s < B_SLOTS; ++s) \
    note(finite_sizes(b_even[s]), B_MODE, b_own[s]); \
  choose_scales();
#define IS_WRONG did_not_suit()
#define LOAD_FIRST LOAD_TILES(even, begin)
#define ALL_STEPS \
  for (uint k0 = begin; k0 < end; k0 += 2 * TILE_DEPTH) { \
    EACH_COLUMN(BEGIN_COLUMN) \
    STEP(k0 + TILE_DEPTH, even, 0, 0, even, A_SECOND, B_SECOND) \
    if (k0 + TILE_DEPTH < end) { \
      STEP(k0 + 2 * TILE_DEPTH, even, A_SECOND, B_SECOND, even, 0, 0) \
    } \
    EACH_COLUMN(END_COLUMN) \
  }
#define DECLARE_ENDS(i, j)
#define ASK_FIRST

/// Four sums of row `m` from column `n` on, of the tile, that are staged at `at`, without the scales: times two powers
/// of two, since one may be beyond float32.
vec4 unscaled(uint at, uint m, uint n) {
  const vec4 scaled = uintBitsToFloat(uvec4(a_tile[at], a_tile[at + 1]));
  vec4 sums;
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const int exponent = -(line_exponent[m] + line_exponent[TILE_M + n + i]), first = exponent / 2;
    sums[i] = scaled[i] * power_of_two(first) * power_of_two(exponent - first);
  }
  return sums;
}

/// Passes eight sums of a row, staged from `from` on, to the epilogue.
void emit_half_row(uint from, uint i, uint j) {
  const uvec2 own = half_row_of(i, j), at = gl_WorkGroupID.xy * uvec2(TILE_M, TILE_N) + own;
  emit_vector(at.x, at.y, unscaled(from, own.x, own.y));
  emit_vector(at.x, at.y + 4, unscaled(from + 2, own.x, own.y + 4));
}

#define EMIT_HALF_ROW(from, i, j) emit_half_row(from, i, j);
#define EMIT_SHARES(i, j) // they have no slices

#define LOAD_ROW(i) \
  MATRIX_A r##i = load_left(a_tile[a_at + i * A_ROWS_STEP], A_ORDER, A_PITCH, FROM_SHARED); \
  MATRIX_A r##i##_low = load_left(a_tile[A_SIZE + a_at + i * A_ROWS_STEP], A_ORDER, A_PITCH, FROM_SHARED);
#define MULTIPLY(i, j) \
  { \
    SUM_MATRIX small = all_sums(0.0); \
    small = multiply_add(r##i##_low, c##j, small); \
    small = multiply_add(r##i, c##j##_low, small); \
    s##i##j = add_sums(s##i##j, times(small, 1.0 / LOW_SCALE)); \
    t##i##j = multiply_add(r##i, c##j, t##i##j); \
  }
#define MULTIPLY_COLUMN(j) \
  MATRIX_B c##j = load_right(b_tile[b_at + j * B_COLUMNS_STEP], B_ORDER, B_PITCH, FROM_SHARED); \
  MATRIX_B c##j##_low = load_right(b_tile[B_SIZE + b_at + j * B_COLUMNS_STEP], B_ORDER, B_PITCH, FROM_SHARED); \
  DOWN_COLUMN(MULTIPLY, j)

// The sums of two steps' large products.
#define BEGIN(i, j) SUM_MATRIX t##i##j = all_sums(0.0);
#define BEGIN_COLUMN(j) DOWN_COLUMN(BEGIN, j)
#define END(i, j) s##i##j = add_sums(s##i##j, t##i##j);
#define END_COLUMN(j) DOWN_COLUMN(END, j)
