// A register-blocked product of tiles held in shared memory. See gemm.glsl.
//
// A group computes a TILE_M × TILE_N tile of C, an invocation ROWS × COLUMNS of it (interleaved, so that shared memory
// is read without bank conflicts). Both operands are in shared memory as [row or column][depth], in vectors along the
// depth; a row has one vector of padding. Two buffers: while one is multiplied, the next tiles are on their way from
// memory into registers. At the end the sums pass through B's tile, so that neighbouring invocations write neighbouring
// columns, and so that the epilogue is compiled once for a pass, not once for a sum. Invariants: TILE_M / ROWS is a
// multiple of 4, TILE_N / COLUMNS of 8, their product is THREADS, and ROWS / 4 rows of sums fit into B's tile.
//
// With SLICED, THREADS is that product for each of the group's slices. All have the whole tile: each multiplies a share
// of every step's depths, and at the end they are added up. Where groups are few, they wait for memory at every step,
// and a deeper step asks for more at once. DEPTH_VECTORS is a multiple of the slices then, and their sums fit into B's
// tile together. No other kernel has that code: drivers compile it, if not used, far longer.
//
// The including kernel defines a_state, a_line_at(m) and a_load(state, k, end): A's depths [k, k + WIDTH) of a row;
// what a vector of them is and how two are multiplied (gemm_operands.glsl, byte_operands.glsl).
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint TILE_M = 128;
layout(constant_id = 2) const uint TILE_N = 128;
layout(constant_id = 3) const uint TILE_DEPTH = 16;
layout(constant_id = 4) const uint ROWS = 8;
layout(constant_id = 5) const uint COLUMNS = 8;

const uint DEPTH_VECTORS = TILE_DEPTH / WIDTH;
const uint PITCH = DEPTH_VECTORS + 1;
const uint A_SLOTS = (TILE_M * DEPTH_VECTORS + THREADS - 1) / THREADS;
const uint B_SLOTS = (TILE_N * DEPTH_VECTORS + THREADS - 1) / THREADS;
const uint ACROSS = TILE_N / COLUMNS; // invocations along the columns
const uint DOWN = TILE_M / ROWS;
#ifdef SLICED
const uint PARTS = DOWN * ACROSS, SLICES = THREADS / PARTS;
#define PART (gl_LocalInvocationID.x % PARTS) // of the tile
#define SLICE (gl_LocalInvocationID.x / PARTS)
#define OWN_VECTORS (DEPTH_VECTORS / SLICES)
#define OWN_DEPTH(k) (SLICE * OWN_VECTORS + k)
#else
#define PART gl_LocalInvocationID.x
#define OWN_VECTORS DEPTH_VECTORS
#define OWN_DEPTH(k) k
#endif
const uint ROW_VECTORS = DOWN * TILE_N / 4; // sums of one row of every invocation
const uint FITTING = 2 * TILE_N * PITCH / ROW_VECTORS;
const uint PASS_ROWS = FITTING >= ROWS ? ROWS : FITTING >= ROWS / 2 ? ROWS / 2 : ROWS / 4; // rows written out together

shared TILE_VECTOR a_tile[2 * TILE_M * PITCH];
shared TILE_VECTOR b_tile[2 * TILE_N * PITCH];

/// What slot `slot` of this invocation loads of a tile of `lines` rows or columns: (line, depth / WIDTH); with
/// line_vectors (the first of four lines, depth): neighbours take 32 bytes of 16 depths, so that sectors are read whole
/// and each writes to a bank of its own.
uvec2 slot_at(uint slot, uint lines, uint mode) {
  const uint i = gl_LocalInvocationID.x + slot * THREADS;
  if (mode == line_vectors)
    return uvec2((i / (2 * TILE_DEPTH) * 2 + i % 2) * 4, i / 2 % TILE_DEPTH);
  return mode == line_elements ? uvec2(i % lines, i / lines) : uvec2(i / DEPTH_VECTORS, i % DEPTH_VECTORS);
}

uint depth_of(uvec2 at, uint mode) {
  return mode == line_vectors ? at.y : WIDTH * at.y;
}

void store_tiles(uint a_buffer, uint b_buffer, TILE_VECTOR a_next[A_SLOTS], TILE_VECTOR b_next[B_SLOTS]) {
  [[unroll]] for (uint s = 0; s < A_SLOTS; ++s) {
    const uvec2 at = slot_at(s, TILE_M, A_MODE);
    if (A_MODE == line_vectors) {
      if (TILE_M * DEPTH_VECTORS % THREADS == 0 || at.x < TILE_M)
        [[unroll]] for (uint i = 0; i < 4; ++i)
          a_tile[a_buffer + (at.x + i) * PITCH + at.y / 4][at.y % 4] = a_next[s][i];
    } else if (TILE_M * DEPTH_VECTORS % THREADS == 0 || (at.x < TILE_M && at.y < DEPTH_VECTORS)) {
      a_tile[a_buffer + at.x * PITCH + at.y] = a_next[s];
    }
  }
  [[unroll]] for (uint s = 0; s < B_SLOTS; ++s) {
    const uvec2 at = slot_at(s, TILE_N, B_MODE);
    if (B_MODE == line_vectors) {
      if (TILE_N * DEPTH_VECTORS % THREADS == 0 || at.x < TILE_N)
        [[unroll]] for (uint i = 0; i < 4; ++i)
          b_tile[b_buffer + (at.x + i) * PITCH + at.y / 4][at.y % 4] = b_next[s][i];
    } else if (TILE_N * DEPTH_VECTORS % THREADS == 0 || (at.x < TILE_N && at.y < DEPTH_VECTORS)) {
      b_tile[b_buffer + at.x * PITCH + at.y] = b_next[s];
    }
  }
}

void main() {
  const uint first_m = gl_WorkGroupID.x * TILE_M, first_n = gl_WorkGroupID.y * TILE_N;
  const uint begin = split_begin(), end = split_end();
  const uint lane = PART % 32, row_of_lanes = PART / 32;
  const uint x = lane % 8 + 8 * (row_of_lanes % (ACROSS / 8)), y = lane / 8 + 4 * (row_of_lanes / (ACROSS / 8));

  a_state a_lines[A_SLOTS];
  line b_lines[B_SLOTS];
  TILE_VECTOR a_next[A_SLOTS], b_next[B_SLOTS];
  [[unroll]] for (uint s = 0; s < A_SLOTS; ++s)
    a_lines[s] = a_line_at(first_m + slot_at(s, TILE_M, A_MODE).x);
  [[unroll]] for (uint s = 0; s < B_SLOTS; ++s)
    b_lines[s] = b_line(first_n + slot_at(s, TILE_N, B_MODE).x);

  SUM sums[ROWS * COLUMNS];
  [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; ++i)
    sums[i] = SUM(0);
  BEGIN_LINES

  // Round i loads tile i and multiplies tile i − 1; the last one only multiplies.
  uint a_buffer = 0, b_buffer = 0;
  for (uint k0 = begin; k0 < end + TILE_DEPTH; k0 += TILE_DEPTH) {
    const bool loads = k0 < end;
    if (loads) {
      [[unroll]] for (uint s = 0; s < A_SLOTS; ++s)
        a_next[s] = a_load(a_lines[s], k0 + depth_of(slot_at(s, TILE_M, A_MODE), A_MODE), end);
      [[unroll]] for (uint s = 0; s < B_SLOTS; ++s)
        b_next[s] = b_load(b_lines[s], k0 + depth_of(slot_at(s, TILE_N, B_MODE), B_MODE), end);
    }
    if (k0 > begin) {
      [[unroll]] for (uint k = 0; k < OWN_VECTORS; ++k) {
        TILE_VECTOR rows[ROWS];
        [[unroll]] for (uint i = 0; i < ROWS; ++i) {
          rows[i] = a_tile[a_buffer + (y + i * DOWN) * PITCH + OWN_DEPTH(k)];
          NOTE_ROW(i, rows[i])
        }
        [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {
          const TILE_VECTOR c = b_tile[b_buffer + (x + j * ACROSS) * PITCH + OWN_DEPTH(k)];
          NOTE_COLUMN(j, c)
          [[unroll]] for (uint i = 0; i < ROWS; ++i) {
            const uint s = i * COLUMNS + j;
            sums[s] = MULTIPLY_ADD(rows[i], c, sums[s]);
          }
        }
      }
      a_buffer = TILE_M * PITCH - a_buffer;
      b_buffer = TILE_N * PITCH - b_buffer;
    }
    if (loads)
      store_tiles(a_buffer, b_buffer, a_next, b_next);
    barrier();
  }

#ifdef SLICED
  [[unroll]] for (uint i = 0; i < ROWS; ++i)
    [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {
      const uint at = ((SLICE * ROWS + i) * DOWN + y) * TILE_N + x + j * ACROSS;
      b_tile[at / 4][at % 4] = sums[i * COLUMNS + j];
    }
  barrier();
  [[dont_unroll]] for (uint v = gl_LocalInvocationID.x; v < ROWS * ROW_VECTORS; v += THREADS) {
    TILE_VECTOR sum = b_tile[v];
    [[unroll]] for (uint other = 1; other < SLICES; ++other)
      sum += b_tile[other * ROWS * ROW_VECTORS + v];
    emit_vector(first_m + v / (TILE_N / 4), first_n + v % (TILE_N / 4) * 4, sum);
  }
#else
  [[unroll]] for (uint pass = 0; pass < ROWS / PASS_ROWS; ++pass) {
    if (pass > 0)
      barrier();
    [[unroll]] for (uint i = 0; i < PASS_ROWS; ++i)
      [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {
        const uint at = (i * DOWN + y) * TILE_N + x + j * ACROSS;
        const uint row = pass * PASS_ROWS + i;
        b_tile[at / 4][at % 4] = SUM_BITS(SETTLED(row, j, sums[row * COLUMNS + j]));
      }
    barrier();
    [[dont_unroll]] for (uint v = gl_LocalInvocationID.x; v < PASS_ROWS * ROW_VECTORS; v += THREADS)
      emit_vector(first_m + pass * PASS_ROWS * DOWN + v / (TILE_N / 4), first_n + v % (TILE_N / 4) * 4, b_tile[v]);
  }
#endif
}
