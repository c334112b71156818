// A product of tiles in shared memory by subgroup-wide matrix products: float16 operands and float sums, float32 in
// pieces of float16 (float_pieces.glsl), or bytes and integer sums. See gemm.glsl.
//
// A group computes a TILE_M × TILE_N tile of C, a subgroup DOWN × ACROSS matrices of 16 × 16, set by the variant
// TYPE_DOWNxACROSS. These are single variables, made by macros: an array of matrices, even one that only literals
// index, is in memory instead of registers (on NVIDIA, a quarter of the speed). If there are more subgroups than a tile
// has parts, each *slice* of them multiplies its own part of a step's depths: a tile is done sooner, and more of memory
// is on its way, where the product has too few tiles to fill the device. An operand is in shared memory in the order in
// which its mode reads vectors: [line][depth], or [depth][line] with line_vectors; rows have 16 bytes of padding, so
// that the matrix loads meet no bank conflicts. Two buffers in shared memory, or one if two are too large, and two sets
// of registers (of pieces one): while the tiles of one depth step are multiplied, those of the next ones (the next one)
// are on their way. At the end each subgroup passes its sums, one 16 × 16 matrix after another, through its part of A's
// tile to the epilogue, where slices add up. Invariants: a subgroup is 32 invocations; THREADS = 32 · slices · TILE_M /
// ROWS · TILE_N / COLUMNS; TILE_DEPTH is a multiple of 32 bytes (the depth of a matrix) · slices, and a tile's vectors
// a multiple of THREADS. src/launch/tiling.cpp knows how much shared memory this takes.
//
// The including kernel defines a_state, a_line_at(m) and a_load(state, k, end) as for gemm_tiled.glsl, of 16 bytes.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint TILE_M = 128;
layout(constant_id = 2) const uint TILE_N = 128;
layout(constant_id = 3) const uint TILE_DEPTH = 32;

#ifdef FLOAT_PIECES
#define STORED uvec2 // WIDTH elements of one piece, in shared memory
const uint PIECES = 2, PADDING = 2;
#else
#define STORED uvec4
const uint PIECES = 1, PADDING = 1;
#endif
const uint MATRIX_VECTORS = 2 * PADDING; // 32 bytes, a matrix's depth
const uint DEPTH_VECTORS = TILE_DEPTH / WIDTH;
const uint A_SLOTS = TILE_M * DEPTH_VECTORS / THREADS;
const uint B_SLOTS = TILE_N * DEPTH_VECTORS / THREADS;
// vectors between two rows of a tile
const uint A_PITCH = A_MODE == line_vectors ? TILE_M / WIDTH + PADDING : DEPTH_VECTORS + PADDING;
const uint B_PITCH = B_MODE == line_vectors ? TILE_N / WIDTH + PADDING : DEPTH_VECTORS + PADDING;
const uint A_SIZE = A_PITCH * (A_MODE == line_vectors ? TILE_DEPTH : TILE_M);
const uint B_SIZE = B_PITCH * (B_MODE == line_vectors ? TILE_DEPTH : TILE_N);
const uint BUFFERS = 2 * PIECES * (A_SIZE + B_SIZE) * 16 / PADDING <= product_double_buffer_bytes ? 2 : 1;
const uint ROWS = DOWN * 16;
const uint COLUMNS = ACROSS * 16;
const uint PARTS = TILE_M / ROWS * (TILE_N / COLUMNS); // subgroups of a slice
const uint SLICES = THREADS / 32 / PARTS;
const uint SLICE_STEPS = DEPTH_VECTORS / MATRIX_VECTORS / SLICES;
// Vectors between the matrices of a tile along its rows, columns and depths.
const uint A_ROWS_STEP = A_MODE == line_vectors ? MATRIX_VECTORS : 16 * A_PITCH,
           A_DEPTH_STEP = A_MODE == line_vectors ? 16 * A_PITCH : MATRIX_VECTORS;
const uint B_COLUMNS_STEP = B_MODE == line_vectors ? MATRIX_VECTORS : 16 * B_PITCH,
           B_DEPTH_STEP = B_MODE == line_vectors ? 16 * B_PITCH : MATRIX_VECTORS;
const uint A_ORDER = A_MODE == line_vectors ? by_columns : by_rows,
    B_ORDER = B_MODE == line_vectors ? by_rows : by_columns;
const uint STAGE_PITCH = 5 * PADDING; // vectors
const uint STAGES_SIZE = THREADS / 32 * 16 * STAGE_PITCH;

const uint A_PIECES = PIECES * A_SIZE, B_PIECES = PIECES * B_SIZE; // vectors of a buffer
// where every second step's are
const uint A_SECOND = BUFFERS == 2 ? A_PIECES : 0, B_SECOND = BUFFERS == 2 ? B_PIECES : 0;

shared STORED a_tile[BUFFERS * A_PIECES > STAGES_SIZE ? BUFFERS * A_PIECES : STAGES_SIZE];
shared STORED b_tile[BUFFERS * B_PIECES];

/// What slot `slot` of this invocation loads of a tile of `lines` rows or columns: first line and depth of the vector,
/// and where it goes.
uvec3 slot_at(uint slot, uint lines, uint mode, uint pitch) {
  const uint i = gl_LocalInvocationID.x + slot * THREADS;
  if (mode == line_vectors)
    return uvec3(i % (lines / WIDTH) * WIDTH, i / (lines / WIDTH), i / (lines / WIDTH) * pitch + i % (lines / WIDTH));
  const uvec2 at = mode == line_elements ? uvec2(i % lines, i / lines) : uvec2(i / DEPTH_VECTORS, i % DEPTH_VECTORS);
  return uvec3(at.x, at.y * WIDTH, at.x * pitch + at.y);
}

/// First row and column of matrix [i, j] of a part, within the tile.
uint row_of_part(uint part, uint i) { return (part % (TILE_M / ROWS) * DOWN + i) * 16; }
uint column_of_part(uint part, uint j) { return (part / (TILE_M / ROWS) * ACROSS + j) * 16; }

/// Where, within the tile, half a row of this subgroup's matrix [i, j] begins: eight sums, which this invocation passes
/// to the epilogue.
uvec2 half_row_of(uint i, uint j) {
  const uint part = gl_SubgroupID % PARTS, lane = gl_SubgroupInvocationID;
  return uvec2(row_of_part(part, i) + lane / 2, column_of_part(part, j) + lane % 2 * 8);
}

// EACH_ROW(X), EACH_COLUMN(X): X of every row or column of this subgroup's matrices; DOWN_COLUMN(X, j): of column j's
// rows.
#if DOWN == 1
#define EACH_ROW(X) X(0)
#define DOWN_COLUMN(X, j) X(0, j)
#elif DOWN == 2
#define EACH_ROW(X) X(0) X(1)
#define DOWN_COLUMN(X, j) X(0, j) X(1, j)
#elif DOWN == 4
#define EACH_ROW(X) X(0) X(1) X(2) X(3)
#define DOWN_COLUMN(X, j) X(0, j) X(1, j) X(2, j) X(3, j)
#endif
#if ACROSS == 1
#define EACH_COLUMN(X) X(0)
#elif ACROSS == 2
#define EACH_COLUMN(X) X(0) X(1)
#elif ACROSS == 3
#define EACH_COLUMN(X) X(0) X(1) X(2)
#elif ACROSS == 4
#define EACH_COLUMN(X) X(0) X(1) X(2) X(3)
#endif

#ifndef BYTE_MATRICES
#define MATRIX_A SUBGROUP_MATRIX(TYPE_F16, matrix_lines, matrix_lines, left_use)
#define MATRIX_B SUBGROUP_MATRIX(TYPE_F16, matrix_lines, matrix_lines, right_use)
#define SUM_MATRIX SUBGROUP_MATRIX(TYPE_F32, matrix_lines, matrix_lines, sum_use)
#endif
spirv_instruction(id = 4457) MATRIX_A load_left(spirv_by_reference STORED from, uint order, uint pitch,
    SHARED_OPERANDS);
spirv_instruction(id = 4457) MATRIX_B load_right(spirv_by_reference STORED from, uint order, uint pitch,
    SHARED_OPERANDS);
spirv_instruction(id = 4458) void store_sums(spirv_by_reference STORED to, SUM_MATRIX sums, uint order, uint pitch,
                                                  SHARED_OPERANDS);
#ifndef MULTIPLY_MATRICES
spirv_instruction(id = 4459) SUM_MATRIX multiply_add(MATRIX_A a, MATRIX_B b, SUM_MATRIX c);
#define MULTIPLY_MATRICES(a, b, c) multiply_add(a, b, c)
#endif
spirv_instruction(id = 80) SUM_MATRIX all_sums(SUM x);

#ifdef FLOAT_PIECES
#include "float_pieces.glsl"
#else
#define STORE(tile, at, size, vector, mode, own) tile[at] = vector;
#define CLEAR_LINES
#define CHOOSE_SCALES
#define IS_WRONG false

// Steps go in pairs, of depths k0 and k0 + TILE_DEPTH: when one begins, the first step's tiles are in shared memory and
// the second one's in registers. Beyond `end` all are 0. NVIDIA's driver (580) counts all loads that are on their way
// from one block of code to another by one counter, and waits until none is left. So where groups are few, whose loads
// no other group's work hides, those of both steps set off together and are waited for after both, which are one block.
// It unrolls loops whose number of steps it knows, which costs small products 3 %.
const bool TOGETHER = BUFFERS == 2 && (FLAGS & product_asks_first) != 0u;
#define LOAD_FIRST \
  LOAD_TILES(even, begin) \
  LOAD_TILES(odd, begin + TILE_DEPTH)
#define PAIR_TOGETHER \
  STORE_TILES(odd, A_SECOND, B_SECOND) \
  LOAD_TILES(even, k0 + 2 * TILE_DEPTH) \
  LOAD_TILES(odd, k0 + 3 * TILE_DEPTH) \
  MULTIPLY_TILES(0, 0) \
  barrier(); \
  MULTIPLY_TILES(A_SECOND, B_SECOND) \
  STORE_TILES(even, 0, 0) \
  barrier();
#define ALL_STEPS \
  uint k0 = begin; \
  if (TOGETHER) { \
    [[dont_unroll]] for (; k0 + TILE_DEPTH < end; k0 += 2 * TILE_DEPTH) { \
      PAIR_TOGETHER \
    } \
    if (k0 < end) { \
      MULTIPLY_TILES(0, 0) \
      barrier(); \
    } \
  } else \
    [[dont_unroll]] for (; k0 < end; k0 += 2 * TILE_DEPTH) { \
      STEP(k0 + 2 * TILE_DEPTH, even, 0, 0, odd, A_SECOND, B_SECOND) \
      if (k0 + TILE_DEPTH < end) { \
        STEP(k0 + 3 * TILE_DEPTH, odd, A_SECOND, B_SECOND, even, 0, 0) \
      } \
    }

// If there are slices, an invocation adds up JOINED neighbouring sums of them at a time, SHARES times for each matrix
// [i, j] of the parts.
const uint EACH = 256 / JOINED; // of a part's matrix
const uint SHARES = SLICES == 1 ? 1 : (PARTS * EACH + THREADS - 1) / THREADS;

/// Where those of number `e` are within the tile.
uvec2 joined_of(uint e, uint i, uint j) {
  return uvec2(row_of_part(e / EACH, i) + e % EACH / (16 / JOINED),
      column_of_part(e / EACH, j) + e % (16 / JOINED) * JOINED);
}

// What the epilogue of matrix [i, j] reads besides sums. Groups that are few ask for it before anything is waited for;
// it takes registers, which many groups need more.
const bool ASKS_FIRST = (FLAGS & product_asks_first) != 0u && DOWN <= (SLICES == 1 ? 1 : 2);

vector_ends ends_of_half_row(uint i, uint j) {
  const uvec2 at = gl_WorkGroupID.xy * uvec2(TILE_M, TILE_N) + half_row_of(i, j);
  return vector_ends_of(at.x, at.y);
}
joined_ends ends_of_share(uint share, uint i, uint j) {
  const uvec2 at = gl_WorkGroupID.xy * uvec2(TILE_M, TILE_N)
      + joined_of(gl_LocalInvocationID.x + share * THREADS, i, j);
  return joined_ends_of(at.x, at.y);
}

// NVIDIA's driver (580) fails at variables of structs that are assigned in a branch and read after it, beside
// matrices.
#define DECLARE_ENDS(i, j) \
  vector_ends half_row##i##j; \
  joined_ends share##i##j[SHARES];
#define ASK_FOR_ENDS(i, j) \
  if (SLICES == 1) \
    half_row##i##j = ends_of_half_row(i, j); \
  else \
    [[unroll]] for (uint s = 0; s < SHARES; ++s) \
      share##i##j[s] = ends_of_share(s, i, j);
#define ASK_FOR_COLUMN(j) DOWN_COLUMN(ASK_FOR_ENDS, j)
#define ASK_FIRST \
  if (ASKS_FIRST) { \
    EACH_COLUMN(ASK_FOR_COLUMN) \
  }

/// Passes eight sums of a row, staged from `from` on, to the epilogue.
void emit_half_row(uint from, uint i, uint j, vector_ends own) {
  const uvec2 at = gl_WorkGroupID.xy * uvec2(TILE_M, TILE_N) + half_row_of(i, j);
  const uvec4 low = a_tile[from], high = a_tile[from + 1];
  const SUM values[8] = {FOUR_SUMS(low).x, FOUR_SUMS(low).y, FOUR_SUMS(low).z, FOUR_SUMS(low).w,
                         FOUR_SUMS(high).x, FOUR_SUMS(high).y, FOUR_SUMS(high).z, FOUR_SUMS(high).w};
  emit_vector(at.x, at.y, values, own);
}

/// Adds up the slices' sums that are staged, and passes them to the epilogue.
void emit_share(uint share, uint i, uint j, joined_ends own) {
  const uint e = gl_LocalInvocationID.x + share * THREADS;
  if (e >= PARTS * EACH)
    return;
  const uint from = e / EACH, row = e % EACH / (16 / JOINED), join = e % (16 / JOINED);
  const uvec2 at = gl_WorkGroupID.xy * uvec2(TILE_M, TILE_N) + joined_of(e, i, j);
  JOINED_SUMS sum = JOINED_SUMS(0);
  [[unroll]] for (uint s = 0; s < SLICES; ++s) {
    const uvec4 four = a_tile[((s * PARTS + from) * 16 + row) * STAGE_PITCH + join * JOINED / 4];
    sum += JOINED_PART(four, join);
  }
  emit_joined(at.x, at.y, sum, own);
}
#define EMIT_HALF_ROW(from, i, j) \
  if (ASKS_FIRST) \
    emit_half_row(from, i, j, half_row##i##j); \
  else \
    emit_half_row(from, i, j, ends_of_half_row(i, j));
#define EMIT_SHARES(i, j) \
  [[unroll]] for (uint s = 0; s < SHARES; ++s) { \
    if (ASKS_FIRST) \
      emit_share(s, i, j, share##i##j[s]); \
    else \
      emit_share(s, i, j, ends_of_share(s, i, j)); \
  }

#define LOAD_ROW(i) MATRIX_A r##i = load_left(a_tile[a_at + i * A_ROWS_STEP], A_ORDER, A_PITCH, FROM_SHARED);
#define MULTIPLY(i, j) s##i##j = MULTIPLY_MATRICES(r##i, c##j, s##i##j);
#define MULTIPLY_COLUMN(j) \
  MATRIX_B c##j = load_right(b_tile[b_at + j * B_COLUMNS_STEP], B_ORDER, B_PITCH, FROM_SHARED); \
  DOWN_COLUMN(MULTIPLY, j)
#endif

const uint STAGE = 16 * STAGE_PITCH; // of a subgroup

// Passes one matrix of sums of each subgroup, number [i, j] of its own, to the epilogue.
#define EMIT(i, j) \
  store_sums(a_tile[gl_SubgroupID * STAGE], s##i##j, by_rows, STAGE_PITCH, TO_SHARED); \
  if (SLICES == 1) { \
    subgroupMemoryBarrierShared(); \
    subgroupBarrier(); \
    EMIT_HALF_ROW(gl_SubgroupID * STAGE + gl_SubgroupInvocationID / 2 * STAGE_PITCH \
        + gl_SubgroupInvocationID % 2 * 2 * PADDING, i, j) \
    subgroupMemoryBarrierShared(); \
    subgroupBarrier(); \
  } else { \
    barrier(); \
    EMIT_SHARES(i, j) \
    barrier(); \
  }

// A set of registers: what this invocation loads of A and B, on its way from memory to shared memory.
#define LOAD_TILES(set, k0) \
  [[unroll]] for (uint s = 0; s < A_SLOTS; ++s) \
    a_##set[s] = a_load(a_lines[s], k0 + slot_at(s, TILE_M, A_MODE, A_PITCH).y, end); \
  [[unroll]] for (uint s = 0; s < B_SLOTS; ++s) \
    b_##set[s] = b_load(b_lines[s], k0 + slot_at(s, TILE_N, B_MODE, B_PITCH).y, end);
#define STORE_TILES(set, a_buffer, b_buffer) \
  [[unroll]] for (uint s = 0; s < A_SLOTS; ++s) \
    STORE(a_tile, a_buffer + slot_at(s, TILE_M, A_MODE, A_PITCH).z, A_SIZE, A_STORED(a_##set[s]), A_MODE, a_own[s]) \
  [[unroll]] for (uint s = 0; s < B_SLOTS; ++s) \
    STORE(b_tile, b_buffer + slot_at(s, TILE_N, B_MODE, B_PITCH).z, B_SIZE, b_##set[s], B_MODE, b_own[s])

#define DECLARE(i, j) \
  SUM_MATRIX s##i##j; \
  DECLARE_ENDS(i, j)
#define DECLARE_COLUMN(j) DOWN_COLUMN(DECLARE, j)
#define ZERO(i, j) s##i##j = all_sums(SUM(0));
#define ZERO_COLUMN(j) DOWN_COLUMN(ZERO, j)
#define EMIT_COLUMN(j) DOWN_COLUMN(EMIT, j)

// Multiplies this slice's part of the tiles that are in shared memory.
#define MULTIPLY_TILES(a_buffer, b_buffer) \
  [[unroll]] for (uint k = 0; k < SLICE_STEPS; ++k) { \
    const uint a_at = a_buffer + row * A_ROWS_STEP + (slice + k) * A_DEPTH_STEP; \
    const uint b_at = b_buffer + column * B_COLUMNS_STEP + (slice + k) * B_DEPTH_STEP; \
    EACH_ROW(LOAD_ROW) \
    EACH_COLUMN(MULTIPLY_COLUMN) \
  }

// A step by itself: those of depth `k` set off into registers `later`, and those of `next` are stored where the next
// step reads them.
#define STEP(k, later, a_buffer, b_buffer, next, a_next, b_next) \
  LOAD_TILES(later, k) \
  MULTIPLY_TILES(a_buffer, b_buffer) \
  if (BUFFERS == 1) \
    barrier(); \
  STORE_TILES(next, a_next, b_next) \
  barrier();

void main() {
  const uint first_m = gl_WorkGroupID.x * TILE_M, first_n = gl_WorkGroupID.y * TILE_N;
  const uint begin = split_begin(), end = split_end();
  // This subgroup's part of the tile, and of each depth step, in matrices.
  const uint part = gl_SubgroupID % PARTS, slice = gl_SubgroupID / PARTS * SLICE_STEPS;
  const uint row = part % (TILE_M / ROWS) * DOWN, column = part / (TILE_M / ROWS) * ACROSS;

  a_state a_lines[A_SLOTS];
  line b_lines[B_SLOTS];
  TILE_VECTOR a_even[A_SLOTS], b_even[B_SLOTS];
  TILE_VECTOR a_odd[A_SLOTS], b_odd[B_SLOTS];
  [[unroll]] for (uint s = 0; s < A_SLOTS; ++s)
    a_lines[s] = a_line_at(first_m + slot_at(s, TILE_M, A_MODE, A_PITCH).x);
  [[unroll]] for (uint s = 0; s < B_SLOTS; ++s)
    b_lines[s] = b_line(first_n + slot_at(s, TILE_N, B_MODE, B_PITCH).x);

  EACH_COLUMN(DECLARE_COLUMN)
  CLEAR_LINES
  do {
    EACH_COLUMN(ZERO_COLUMN)
    LOAD_FIRST
    ASK_FIRST
    CHOOSE_SCALES
    STORE_TILES(even, 0, 0)
    barrier();
    ALL_STEPS
  } while (IS_WRONG);

  EACH_COLUMN(EMIT_COLUMN)
}
