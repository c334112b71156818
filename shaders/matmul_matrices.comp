#version 450
// Products by one constant right matrix, packed by columns, by matrices of the whole group: float16, sums in float.
//
// A group computes a tile of C, ROWS × COLUMNS, DEPTH depths at a time. How many columns and depths the product has are
// constants of the kernel: so the driver's compiler knows that all of B's rows, and A's, begin at multiples of eight
// elements, and how often it goes around, without which the same kernel has two thirds of the speed. Tiles that are
// wholly inside are read without bounds; where all of them are, the driver has one loop instead of two to compile, in a
// third of the time. So the last tile of rows moves up if the rows are no whole tiles, and computes some rows again:
// with bounds, 1568 × 512 × 2048 takes 73 µs on an H200, and 1536 rows take 32. Groups: as many as tiles, x counts
// their rows, y their columns; which has which: own_tile(). Depths are not split: a loop that begins elsewhere than
// at 0 takes three times as long.
//
// Groups of large tiles have 128 invocations, of which a multiprocessor holds two groups: while one begins or ends, the
// other multiplies.
// Variants: f16_64x64x128 f16_128x64x64 f16_128x128x64
// Compiled twice: see group_matrix.glsl.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define TROUPE_f16
#include "types.glsl"
#include "activation.glsl"
#include "group_matrix.glsl"
#include "parameters/matmul.h"

// FEW_STEPS: with fewer, the driver unrolls the loop over the depths wholly, which takes half as long again. With more
// it unrolls it as is best: not at all, it takes a fifth longer.
#if defined(TROUPE_f16_64x64x128)
const uint THREADS = 256u, ROWS = 64u, COLUMNS = 64u, DEPTH = 128u, FEW_STEPS = 0u;
#elif defined(TROUPE_f16_128x64x64)
const uint THREADS = 128u, ROWS = 128u, COLUMNS = 64u, DEPTH = 64u, FEW_STEPS = 24u;
#elif defined(TROUPE_f16_128x128x64)
const uint THREADS = 128u, ROWS = 128u, COLUMNS = 128u, DEPTH = 64u, FEW_STEPS = 24u;
#endif

layout(local_size_x = THREADS) in;
layout(constant_id = 0) const uint FLAGS = 0;
layout(constant_id = 1) const uint ACTIVATION = 0;
layout(constant_id = 2) const uint N = 8; // columns of the product
layout(constant_id = 3) const uint K = 8; // its depths
// from one row of C to the next in the output; N unless C is a part of larger rows
layout(constant_id = 4) const uint OUT_ROW = 8;
layout(constant_id = 5) const uint OUT_FIRST = 0; // where C begins there; both are multiples of eight too
layout(constant_id = 6) const uint BAND = 0; // column tiles that groups go through together; 0: one, all rows of it
const bool HAS_BIAS = (FLAGS & product_bias) != 0u;
const bool HAS_RESIDUAL = (FLAGS & product_residual) != 0u;
const bool WHOLE_TILES = (FLAGS & product_whole_tiles) != 0u;

layout(set = 0, binding = 1, std430) readonly buffer left_buffer { float16_t a[]; };
layout(set = 0, binding = 2, std430) readonly buffer right_buffer { float16_t b[]; };
layout(set = 0, binding = 3, std430) readonly buffer bias_buffer { float16_t bias[]; };
layout(set = 0, binding = 4, std430) readonly buffer residual_buffer { float16_t residual[]; };
layout(set = 0, binding = 5, std430) buffer output_buffer { float16_t result[]; };

#define LEFT GROUP_MATRIX(TYPE_F16, ROWS, DEPTH, left_use)
#define RIGHT GROUP_MATRIX(TYPE_F16, DEPTH, COLUMNS, right_use)
#define SUMS GROUP_MATRIX(TYPE_F32, ROWS, COLUMNS, sum_use)
#define RESULT GROUP_MATRIX(TYPE_F16, ROWS, COLUMNS, sum_use)

spirv_instruction(id = 80) LEFT all_left(float16_t x);
spirv_instruction(id = 80) RIGHT all_right(float16_t x);
spirv_instruction(id = 80) SUMS all_sums(float x);
// The last literals: no memory operands; whether a view follows.
spirv_instruction(id = 5367) LEFT load_left(spirv_by_reference float16_t at, LEFT outside, LAYOUT tile,
                                            spirv_literal uint memory, spirv_literal uint view);
spirv_instruction(id = 5367) LEFT load_left_inside(spirv_by_reference float16_t at, LEFT outside, UNBOUNDED tile,
                                                   spirv_literal uint memory, spirv_literal uint view);
spirv_instruction(id = 5367) RIGHT load_right(spirv_by_reference float16_t at, RIGHT outside, LAYOUT tile,
                                              spirv_literal uint memory, spirv_literal uint view, TURNED how);
spirv_instruction(id = 5367) RIGHT load_right_inside(spirv_by_reference float16_t at, RIGHT outside, UNBOUNDED tile,
                                                     spirv_literal uint memory, spirv_literal uint view, TURNED how);
spirv_instruction(id = 5368) void store_result(spirv_by_reference float16_t at, RESULT what, LAYOUT tile,
                                               spirv_literal uint memory, spirv_literal uint view);
spirv_instruction(id = 5368) void store_result_inside(spirv_by_reference float16_t at, RESULT what, UNBOUNDED tile,
                                                      spirv_literal uint memory, spirv_literal uint view);
spirv_instruction(id = 4459) SUMS multiply_add(LEFT a, RIGHT b, SUMS c);
spirv_instruction(id = 115) RESULT halved(SUMS x);
spirv_instruction(capabilities = [5432], id = 5369) SUMS each_finished(SUMS m, spirv_literal uint f, uint row,
    uint column);

#ifndef FUNCTION_finished
#define FUNCTION_finished 1u
#endif

/// The epilogue of one element; what is outside C is not written, but must not be read either.
float finished(const in uint r, const in uint c, const in float sum, const in uint row, const in uint column) {
  const uint m = min(row + r, product.m - 1u), n = min(column + c, N - 1u);
  float value = product.alpha * sum;
  if (HAS_BIAS)
    value += product.beta * float(bias[m * product.bias_row + n * product.bias_column]);
  if (HAS_RESIDUAL)
    value += float(residual[m * N + n]);
  return activate_half(ACTIVATION, value, product.act_alpha, product.act_beta);
}

/// The group's row tile and column tile. Groups that run at the same time read fewer rows and columns if their tiles
/// are a block of BAND columns.
uvec2 own_tile() {
  if (BAND == 0u)
    return gl_WorkGroupID.xy;
  const uint rows = gl_NumWorkGroups.x, group = gl_WorkGroupID.y * rows + gl_WorkGroupID.x;
  const uint first = group / (BAND * rows) * BAND, columns = min(BAND, gl_NumWorkGroups.y - first);
  const uint own = group - first * rows;
  return uvec2(own / columns, first + own % columns);
}

#define ALL_STEPS(LOADS) \
  if (K / DEPTH < FEW_STEPS) \
    [[dont_unroll]] for (uint k = 0; k < K; k += DEPTH) { \
      LOADS \
      sums = multiply_add(left, right, sums); \
    } \
  else \
    for (uint k = 0; k < K; k += DEPTH) { \
      LOADS \
      sums = multiply_add(left, right, sums); \
    }
#define LOAD_INSIDE \
  left = load_left_inside(a[0], left, unbounded_slice(rows, row, ROWS, k, DEPTH), 0u, 0u); \
  right = load_right_inside(b[0], right, unbounded_slice(columns, column, COLUMNS, k, DEPTH), 0u, 1u, by_columns);
#define LOAD_BOUNDED \
  left = load_left(a[0], left, slice(rows, row, ROWS, k, DEPTH), 0u, 0u); \
  right = load_right(b[0], right, slice(columns, column, COLUMNS, k, DEPTH), 0u, 1u, by_columns);

void main() {
  const float16_t zero = float16_t(0.0); // what a type names stands before the first matrix
  const float none = 0.0;
  const uvec2 tile_at = own_tile();
  const uint above = tile_at.x * ROWS, row = WHOLE_TILES ? min(above, product.m - ROWS) : above;
  const uint column = tile_at.y * COLUMNS;
  const TURNED by_columns = turned();
  SUMS sums = all_sums(none);
  LEFT left = all_left(zero);
  RIGHT right = all_right(zero);
  if (WHOLE_TILES || (row + ROWS <= product.m && column + COLUMNS <= N && K % DEPTH == 0)) {
    const UNBOUNDED rows = unbounded_sizes(new_unbounded(), product.m, K);
    const UNBOUNDED columns = unbounded_sizes(new_unbounded(), N, K);
    ALL_STEPS(LOAD_INSIDE)
  } else {
    const LAYOUT rows = with_sizes(new_layout(), product.m, K), columns = with_sizes(new_layout(), N, K);
    ALL_STEPS(LOAD_BOUNDED)
  }
  sums = each_finished(sums, FUNCTION_finished, row, column);
  if (OUT_ROW == N && WHOLE_TILES) { // with bounds, 2048 × 2048 × 2048 takes 66 instead of 58 µs
    const UNBOUNDED tile = unbounded_slice(unbounded_sizes(new_unbounded(), product.m, N), row, ROWS, column, COLUMNS);
    store_result_inside(result[0], halved(sums), tile, 0u, 0u);
  } else if (OUT_ROW == N) {
    const LAYOUT tile = slice(with_sizes(new_layout(), product.m, N), row, ROWS, column, COLUMNS);
    store_result(result[0], halved(sums), tile, 0u, 0u);
  } else {
    const LAYOUT tile = slice(rows_of(product.m, N, OUT_ROW), row, ROWS, column, COLUMNS);
    store_result(result[OUT_FIRST], halved(sums), tile, 0u, 0u);
  }
}
