// Products of float32 by matrix units of float16: the two pieces of an element, and the sums of their products. See gemm_cooperative.glsl.
//
// An element of a tile, scaled by a power of two, is high + low / 2^11: its first 11 bits, and what is left of it. A product is
// high · high + (high · low + low · high) / 2^11; what is left out, low · low and the last bit of a low, is less than 2^-22 of it (Ootomo and Yokota,
// "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance", 2022,
// https://arxiv.org/abs/2203.03341). Matrix units do not round sums to nearest, which loses more the more they add: they add the depths of two steps,
// and small products of one matrix; all that is added in float32.
//
// The scales make the largest element of a group's first step about 2^11. Then what is above 2^-25 of that has all its bits, and what is smaller is right to
// within 2^-47 of it. If an element that comes later is too large for its scale, the group multiplies its tile once more, with scales for what it has seen.
// What is not finite has ±1 as high and itself as low, so that its products are what they are in float32.
#define MATRIX_A fcoopmatNV<16, gl_ScopeSubgroup, 16, 16>
#define MATRIX_B MATRIX_A
#define SUM_MATRIX fcoopmatNV<32, gl_ScopeSubgroup, 16, 16>

const float LOW_SCALE = 2048.0;
const int USUAL = 11, MOST = 14; // exponents of a tile's largest element, scaled

struct piece_scale {
  int exponent;
  float factor;
  uint largest; // bits of the largest finite element that this invocation has seen
};
piece_scale a_scale = piece_scale(0, 1.0, 0), b_scale = a_scale;

shared uint largest_of_lanes[2 * 32]; // of A and of B, by the lanes of all subgroups

const uint infinity_bits = 0x7f800000u;

/// The largest of four elements without their signs, as bits.
uint largest_of(vec4 x) {
  const uvec4 size = floatBitsToUint(x) & 0x7fffffffu;
  return max(max(size.x, size.y), max(size.z, size.w));
}

uvec2 halves(vec4 x) { return uvec2(packHalf2x16(x.xy), packHalf2x16(x.zw)); }

/// What the halves are. The driver would take a conversion to them and back for nothing, were there not a zero that it does not know.
vec4 floats(uvec2 halves) {
  const uvec2 bits = halves ^ product.k >> 31;
  return vec4(unpackHalf2x16(bits.x), unpackHalf2x16(bits.y));
}

void split(vec4 x, inout piece_scale scale, out uvec2 high, out uvec2 low) {
  const vec4 scaled = x * scale.factor;
  high = halves(scaled);
  const vec4 rest = (scaled - floats(high)) * LOW_SCALE;
  low = halves(rest);
  const uint most = largest_of(x);
  if (most < infinity_bits) {
    scale.largest = max(scale.largest, most);
    return;
  }
  const uvec4 bits = floatBitsToUint(x);
  const bvec4 finite = lessThan(bits & 0x7fffffffu, uvec4(infinity_bits));
  high = halves(mix(uintBitsToFloat(bits & 0x80000000u | floatBitsToUint(1.0)), scaled, finite));
  low = halves(mix(x, rest, finite));
}

#define STORE(tile, at, size, vector, scale) \
  { \
    uvec2 high, low; \
    split(vector, scale, high, low); \
    tile[at] = high; \
    tile[at + size] = low; \
  }

#define CLEAR_LARGEST \
  if (gl_LocalInvocationID.x < 64) \
    largest_of_lanes[gl_LocalInvocationID.x] = 0; \
  barrier();

/// Bits of the largest elements of A and of B that the group has seen. For all of its invocations, and no operation of subgroups: these need not be
/// together behind loads that lines beyond the product skip.
uvec2 largest_of_group() {
  atomicMax(largest_of_lanes[gl_SubgroupInvocationID], a_scale.largest);
  atomicMax(largest_of_lanes[32 + gl_SubgroupInvocationID], b_scale.largest);
  barrier();
  uvec2 all = uvec2(0);
  [[unroll]] for (uint lane = 0; lane < 32; ++lane)
    all = max(all, uvec2(largest_of_lanes[lane], largest_of_lanes[32 + lane]));
  return all;
}

int exponent_of(uint bits) { return int(bits >> 23) - 127; }

/// 2^exponent, of a normal number.
float power_of_two(int exponent) { return uintBitsToFloat(uint(exponent + 127) << 23); }

void set_scale(inout piece_scale scale, uint largest) {
  scale.exponent = largest == 0 ? 0 : min(USUAL - exponent_of(largest), 126);
  scale.factor = power_of_two(scale.exponent);
}

void note(vec4 x, inout piece_scale scale) {
  const uint most = largest_of(x);
  scale.largest = max(scale.largest, most < infinity_bits ? most : 0);
}

/// Chooses scales for what the group has seen and has in its registers.
#define CHOOSE_SCALES \
  [[unroll]] for (uint s = 0; s < A_SLOTS; ++s) \
    note(a_even[s], a_scale); \
  [[unroll]] for (uint s = 0; s < B_SLOTS; ++s) \
    note(b_even[s], b_scale); \
  const uvec2 largest = largest_of_group(); \
  set_scale(a_scale, largest.x); \
  set_scale(b_scale, largest.y);

/// Whether elements were too large for the scales. For all of the group's invocations.
bool was_too_large() {
  const uvec2 largest = largest_of_group();
  return exponent_of(largest.x) + a_scale.exponent > MOST || exponent_of(largest.y) + b_scale.exponent > MOST;
}
#define IS_WRONG was_too_large()

// Splitting has registers for one step that is on its way.
#define SECOND even
#define STEPS_AHEAD 1

/// Four sums that are staged from `at` on, without the scales: times two powers of two, since one may be beyond float32.
vec4 unscaled(uint at) {
  const int exponent = -(a_scale.exponent + b_scale.exponent), first = exponent / 2;
  return uintBitsToFloat(uvec4(a_tile[at], a_tile[at + 1])) * power_of_two(first) * power_of_two(exponent - first);
}

/// Passes eight sums of a row, staged from `at` on, to the epilogue.
void emit_half_row(uint at, uint m, uint n) {
  emit_vector(m, n, unscaled(at));
  emit_vector(m, n + 4, unscaled(at + 2));
}

/// Four neighbouring sums of the row that is staged at `row`, number `join`.
vec4 joined_at(uint row, uint join) { return unscaled(row + 2 * join); }
#define JOINED 4
#define JOINED_SUMS vec4
#define emit_joined emit_vector

#define LOAD_ROW(i) \
  MATRIX_A r##i, r##i##_low; \
  coopMatLoadNV(r##i, a_tile, a_at + i * A_ROWS_STEP, A_PITCH, A_MODE == line_vectors); \
  coopMatLoadNV(r##i##_low, a_tile, A_SIZE + a_at + i * A_ROWS_STEP, A_PITCH, A_MODE == line_vectors);
#define MULTIPLY(i, j) \
  { \
    SUM_MATRIX small = SUM_MATRIX(0); \
    small = coopMatMulAddNV(r##i##_low, c##j, small); \
    small = coopMatMulAddNV(r##i, c##j##_low, small); \
    s##i##j = s##i##j + small * (1.0 / LOW_SCALE); \
    t##i##j = coopMatMulAddNV(r##i, c##j, t##i##j); \
  }
#define MULTIPLY_COLUMN(j) \
  MATRIX_B c##j, c##j##_low; \
  coopMatLoadNV(c##j, b_tile, b_at + j * B_COLUMNS_STEP, B_PITCH, B_MODE != line_vectors); \
  coopMatLoadNV(c##j##_low, b_tile, B_SIZE + b_at + j * B_COLUMNS_STEP, B_PITCH, B_MODE != line_vectors); \
  DOWN_COLUMN(MULTIPLY, j)

// The sums of two steps' large products.
#define BEGIN(i, j) SUM_MATRIX t##i##j = SUM_MATRIX(0);
#define BEGIN_COLUMN(j) DOWN_COLUMN(BEGIN, j)
#define END(i, j) s##i##j = s##i##j + t##i##j;
#define END_COLUMN(j) DOWN_COLUMN(END, j)
