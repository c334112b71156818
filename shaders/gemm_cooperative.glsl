// A product of tiles in shared memory by subgroup-wide matrix products: float16 operands, float sums. See gemm.glsl.
//
// A group computes a TILE_M × TILE_N tile of C, a subgroup DOWN × ACROSS matrices of 16 × 16. These two are literals, set by
// the variant f16_DOWNxACROSS: drivers keep an array of matrices in registers only where its loops unroll early. An operand lies in shared
// memory in the order in which its mode reads vectors: [line][depth], or [depth][line] in mode 3; rows have one vector of
// padding, so that the matrix loads meet no bank conflicts. Two buffers: while one is multiplied, the next tiles are on their
// way from memory into registers. At the end each subgroup passes its sums, one 16 × 16 matrix after another, through its
// part of A's tile to the epilogue.
// Invariants: a subgroup is 32 invocations; THREADS = 32 · TILE_M / ROWS · TILE_N / COLUMNS; TILE_DEPTH is a multiple
// of 16, a tile's vectors a multiple of THREADS, and A's two buffers hold 80 vectors a subgroup.
//
// The including kernel defines a_state, a_line_at(m) and a_load(state, k, end) as for gemm_tiled.glsl, of 8 elements.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint TILE_M = 128;
layout(constant_id = 2) const uint TILE_N = 128;
layout(constant_id = 3) const uint TILE_DEPTH = 32;

const uint DEPTH8 = TILE_DEPTH / 8;
const uint A_SLOTS = TILE_M * DEPTH8 / THREADS;
const uint B_SLOTS = TILE_N * DEPTH8 / THREADS;
const uint A_PITCH = A_MODE == 3 ? TILE_M / 8 + 1 : DEPTH8 + 1; // vectors between two rows of a tile
const uint B_PITCH = B_MODE == 3 ? TILE_N / 8 + 1 : DEPTH8 + 1;
const uint A_SIZE = A_PITCH * (A_MODE == 3 ? TILE_DEPTH : TILE_M);
const uint B_SIZE = B_PITCH * (B_MODE == 3 ? TILE_DEPTH : TILE_N);
const uint ROWS = DOWN * 16;
const uint COLUMNS = ACROSS * 16;
// Vectors between 16 rows, columns or depths of a tile.
const uint A_ROWS_STEP = A_MODE == 3 ? 2 : 16 * A_PITCH, A_DEPTH_STEP = A_MODE == 3 ? 16 * A_PITCH : 2;
const uint B_COLUMNS_STEP = B_MODE == 3 ? 2 : 16 * B_PITCH, B_DEPTH_STEP = B_MODE == 3 ? 16 * B_PITCH : 2;
const uint STAGE_PITCH = 5; // vectors

shared uvec4 a_tile[2 * A_SIZE];
shared uvec4 b_tile[2 * B_SIZE];

/// What slot `slot` of this invocation loads of a tile of `lines` rows or columns: first line and depth of the vector, and
/// where it goes.
uvec3 slot_at(uint slot, uint lines, uint mode, uint pitch) {
  const uint i = gl_LocalInvocationID.x + slot * THREADS;
  if (mode == 3)
    return uvec3(i % (lines / 8) * 8, i / (lines / 8), i / (lines / 8) * pitch + i % (lines / 8));
  const uvec2 at = mode == 2 ? uvec2(i % lines, i / lines) : uvec2(i / DEPTH8, i % DEPTH8);
  return uvec3(at.x, at.y * 8, at.x * pitch + at.y);
}

/// Passes one matrix of sums, whose element [0, 0] is C[m, n], to the epilogue: half a row an invocation.
void emit_matrix(fcoopmatNV<32, gl_ScopeSubgroup, 16, 16> sums, uint m, uint n) {
  const uint first = gl_SubgroupID * 16 * STAGE_PITCH, lane = gl_SubgroupInvocationID;
  coopMatStoreNV(sums, a_tile, first, STAGE_PITCH, false);
  subgroupMemoryBarrierShared();
  subgroupBarrier();
  const uint at = first + lane / 2 * STAGE_PITCH + lane % 2 * 2;
  const vec4 low = uintBitsToFloat(a_tile[at]), high = uintBitsToFloat(a_tile[at + 1]);
  const float values[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  emit_vector(m + lane / 2, n + lane % 2 * 8, values);
  subgroupMemoryBarrierShared();
  subgroupBarrier();
}

void main() {
  const uint first_m = gl_WorkGroupID.x * TILE_M, first_n = gl_WorkGroupID.y * TILE_N;
  const uint begin = split_begin(), end = split_end();
  // This subgroup's part of the tile, in matrices.
  const uint row = gl_SubgroupID % (TILE_M / ROWS) * DOWN, column = gl_SubgroupID / (TILE_M / ROWS) * ACROSS;

  a_state a_lines[A_SLOTS];
  line b_lines[B_SLOTS];
  uvec4 a_next[A_SLOTS], b_next[B_SLOTS];
  [[unroll]] for (uint s = 0; s < A_SLOTS; ++s)
    a_lines[s] = a_line_at(first_m + slot_at(s, TILE_M, A_MODE, A_PITCH).x);
  [[unroll]] for (uint s = 0; s < B_SLOTS; ++s)
    b_lines[s] = b_line(first_n + slot_at(s, TILE_N, B_MODE, B_PITCH).x);

  fcoopmatNV<32, gl_ScopeSubgroup, 16, 16> sums[DOWN * ACROSS];
  [[unroll]] for (uint i = 0; i < DOWN * ACROSS; ++i)
    sums[i] = fcoopmatNV<32, gl_ScopeSubgroup, 16, 16>(0.0);

  // Round i loads tile i and multiplies tile i − 1; the last one only multiplies.
  uint a_buffer = 0, b_buffer = 0;
  for (uint k0 = begin; k0 < end + TILE_DEPTH; k0 += TILE_DEPTH) {
    const bool loads = k0 < end;
    if (loads) {
      [[unroll]] for (uint s = 0; s < A_SLOTS; ++s)
        a_next[s] = a_load(a_lines[s], k0 + slot_at(s, TILE_M, A_MODE, A_PITCH).y, end);
      [[unroll]] for (uint s = 0; s < B_SLOTS; ++s)
        b_next[s] = b_load(b_lines[s], k0 + slot_at(s, TILE_N, B_MODE, B_PITCH).y, end);
    }
    if (k0 > begin) {
      [[unroll]] for (uint k = 0; k < TILE_DEPTH / 16; ++k) {
        fcoopmatNV<16, gl_ScopeSubgroup, 16, 16> rows[DOWN], c;
        [[unroll]] for (uint i = 0; i < DOWN; ++i)
          coopMatLoadNV(rows[i], a_tile, a_buffer + (row + i) * A_ROWS_STEP + k * A_DEPTH_STEP, A_PITCH, A_MODE == 3);
        [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
          coopMatLoadNV(c, b_tile, b_buffer + (column + j) * B_COLUMNS_STEP + k * B_DEPTH_STEP, B_PITCH, B_MODE != 3);
          [[unroll]] for (uint i = 0; i < DOWN; ++i)
            sums[i * ACROSS + j] = coopMatMulAddNV(rows[i], c, sums[i * ACROSS + j]);
        }
      }
      a_buffer = A_SIZE - a_buffer;
      b_buffer = B_SIZE - b_buffer;
    }
    if (loads) {
      [[unroll]] for (uint s = 0; s < A_SLOTS; ++s)
        a_tile[a_buffer + slot_at(s, TILE_M, A_MODE, A_PITCH).z] = a_next[s];
      [[unroll]] for (uint s = 0; s < B_SLOTS; ++s)
        b_tile[b_buffer + slot_at(s, TILE_N, B_MODE, B_PITCH).z] = b_next[s];
    }
    barrier();
  }

  [[unroll]] for (uint i = 0; i < DOWN; ++i)
    [[unroll]] for (uint j = 0; j < ACROSS; ++j)
      emit_matrix(sums[i * ACROSS + j], first_m + (row + i) * 16, first_n + (column + j) * 16);
}
