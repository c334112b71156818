// Products of few rows by up to three matrices, the rows perhaps normalised first (src/ops/projections.cpp): what kernels of float matrices
// (projections.comp) and of packed ones (matmul_nbits.comp) share.
//
// Columns are dealt out in slots of COLUMNS, part after part; if they are gated, in turn: column n of part 0, column n of part 1. A team
// of LANES invocations computes a slot for all rows. Each group normalises the rows for itself, into shared memory: they are few, and
// every other group does the same meanwhile. So that this costs nothing but their own time, the including kernel has its first loads of
// weights on their way before:
//
//   begin(); load weights; normalise_rows(); add up sums, reading the rows by row_vector(); finish()
//
// Columns of a part may be rotated in pairs as rotary.comp does: then a pair's columns are in neighbouring slots, or one slot, and each group has
// an even number of teams. The including kernel says where the tables are bound: ANGLES is the first of three bindings.
//
// Constants 0 … 11 as below, the kernel's own after them. LANES and THREADS are powers of two, whole subgroups, ROWS · COLUMNS ≤ LANES;
// if gated, COLUMNS is 1 and a group has an even number of teams. PLAIN: without subgroup arithmetic.
#ifndef TROUPE_PROJECTIONS
#define TROUPE_PROJECTIONS

#include "types.glsl"
#ifndef PLAIN
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#include "common.glsl"
#include "activation.glsl"
#include "parameters/projections.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256u;
layout(constant_id = 1) const uint LANES = 32u;
layout(constant_id = 2) const uint COLUMNS = 1u;
layout(constant_id = 3) const uint ROWS = 1u;
layout(constant_id = 4) const uint UNROLL = 4u;
layout(constant_id = 5) const uint NORM = rows_as_they_are;
layout(constant_id = 6) const uint DEPTH = 8u; // elements of a row
layout(constant_id = 7) const uint PARTS = 1u;
layout(constant_id = 8) const uint FLAGS = 0u;
layout(constant_id = 9) const uint ACTIVATION_0 = 0u;
layout(constant_id = 10) const uint ACTIVATION_1 = 0u;
layout(constant_id = 11) const uint ACTIVATION_2 = 0u;

// A vector is 16 bytes.
#ifdef TROUPE_f16
#define VECTOR uvec4
const uint WIDTH = 8u;
#else
#define VECTOR vec4
const uint WIDTH = 4u;
#endif

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 1, std430) readonly buffer source_vectors { VECTOR x_vectors[]; };
layout(set = 0, binding = 2, std430) readonly buffer norm_scales { T norm_scale[]; };
layout(set = 0, binding = 2, std430) readonly buffer norm_scale_vectors { VECTOR scale_vectors[]; };
layout(set = 0, binding = 3, std430) readonly buffer norm_shifts { T norm_shift[]; };
layout(set = 0, binding = 3, std430) readonly buffer norm_shift_vectors { VECTOR shift_vectors[]; };
layout(set = 0, binding = 4, std430) readonly buffer residual_buffer { T residual[]; };
layout(set = 0, binding = ANGLES, std430) readonly buffer cos_buffer { T cosines[]; };
layout(set = 0, binding = ANGLES + 1, std430) readonly buffer sin_buffer { T sines[]; };
layout(set = 0, binding = ANGLES + 2, std430) readonly buffer position_buffer { uvec2 positions[]; }; // 64-bit integers

const bool GATED = (FLAGS & projections_gated) != 0u;
const bool ROTATES = (FLAGS / projections_rotated & 7u) != 0u; // any part
const bool INTERLEAVED = (FLAGS & projections_interleaved) != 0u;
const uint SUMS = ROWS * COLUMNS;
/// Vectors of a row that are multiplied: those beyond DEPTH, if any, are zeros.
const uint VECTORS = (DEPTH + 7u) / 8u * 8u / WIDTH;
const bool NORMALISED = NORM != rows_as_they_are;
const uint KEPT = NORMALISED ? ROWS * VECTORS : 1u;
const uint ITEMS = (VECTORS + THREADS - 1u) / THREADS;

shared VECTOR kept_rows[KEPT];
#ifdef PLAIN
shared float team_sums[SUMS * THREADS];
shared float group_sums[NORMALISED ? THREADS : 1u];
#else
shared float team_sums[SUMS * THREADS / 2u]; // by subgroup
shared float group_sums[THREADS];            // two slots, by subgroup
#endif

uint id, lane, team;
uint part, column; // of the team's slot: the first column
float sums[SUMS];   // of the invocation: row by row, a row's columns together
float cosine, sine; // for the column of the invocation's result, if it is rotated

bool is_rotated(uint p) {
  return (FLAGS / projections_rotated >> p & 1u) != 0u;
}

/// The first column of slot `own` of a part whose pairs are (i, i + pairs) of a head.
uint paired_column(uint own) {
  const uint halves = width / 2u, pair = own / 2u * COLUMNS, head = pair / halves, p = pair - head * halves;
  const uint other = own % 2u;
  return head * width + (p < pairs ? p + other * pairs : 2u * p + other * COLUMNS);
}

void begin() {
#ifdef PLAIN
  id = gl_LocalInvocationID.x;
#else
  id = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
#endif
  lane = id % LANES;
  team = id / LANES;
  [[unroll]] for (uint i = 0u; i < SUMS; ++i)
    sums[i] = 0.0;
  const uint slot = flat_group() * (THREADS / LANES) + team;
  part = 0u;
  column = slot;
  if (GATED) {
    part = slot % 2u;
    column = slot / 2u;
    return;
  }
  if (PARTS > 1u && slot >= parts[1].x)
    part = PARTS > 2u && slot >= parts[2].x ? 2u : 1u;
  const uint own = slot - parts[part].x;
  column = own * COLUMNS;
  if (ROTATES && !INTERLEAVED && is_rotated(part))
    column = paired_column(own);
}

/// Element i of a vector.
float element(VECTOR v, uint i) {
#ifdef TROUPE_f16
  return unpackHalf2x16(v[i / 2u])[i % 2u];
#else
  return v[i];
#endif
}

VECTOR vector_of(float e[WIDTH]) {
#ifdef TROUPE_f16
  VECTOR v;
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    v[i] = packFloat2x16(f16vec2(float16_t(e[2u * i]), float16_t(e[2u * i + 1u])));
  return v;
#else
  return vec4(e[0], e[1], e[2], e[3]);
#endif
}

/// The vector of row `row` of an array [rows, DEPTH] that begins at element v · WIDTH of it; zeros beyond the row's end.
#define VECTOR_OF(ELEMENTS, VECTORS_OF_IT, row, v)                                        \
  if (DEPTH % WIDTH == 0u)                                                                \
    return v < DEPTH / WIDTH ? VECTORS_OF_IT[row * (DEPTH / WIDTH) + v] : VECTOR(0);      \
  float e[WIDTH];                                                                         \
  [[unroll]] for (uint i = 0u; i < WIDTH; ++i)                                            \
    e[i] = v * WIDTH + i < DEPTH ? float(ELEMENTS[row * DEPTH + v * WIDTH + i]) : 0.0;    \
  return vector_of(e);

VECTOR source_vector(uint row, uint v) {
  VECTOR_OF(x, x_vectors, row, v)
}
VECTOR scale_vector(uint v) {
  VECTOR_OF(norm_scale, scale_vectors, 0u, v)
}
VECTOR shift_vector(uint v) {
  VECTOR_OF(norm_shift, shift_vectors, 0u, v)
}

/// Vector v < VECTORS of a row as it is multiplied.
VECTOR row_vector(uint row, uint v) {
  return NORMALISED ? kept_rows[row * VECTORS + v] : source_vector(row, v);
}

/// The sum over the group. `slot` (0 or 1) must differ from that of the sum before.
float group_sum(float sum, uint slot) {
#ifdef PLAIN
  group_sums[id] = sum;
  barrier();
  for (uint reach = THREADS / 2u; reach > 0u; reach /= 2u) {
    if (id < reach)
      group_sums[id] += group_sums[id + reach];
    barrier();
  }
  sum = group_sums[0];
  barrier();
  return sum;
#else
  sum = subgroupAdd(sum);
  if (gl_SubgroupInvocationID == 0u)
    group_sums[slot * (THREADS / 2u) + gl_SubgroupID] = sum;
  barrier();
  sum = 0.0;
  for (uint i = 0u; i < gl_NumSubgroups; ++i)
    sum += group_sums[slot * (THREADS / 2u) + i];
  return sum;
#endif
}

/// What an invocation has of scale and shift, the same for all rows.
VECTOR own_scale[ITEMS], own_shift[ITEMS];

void normalise_row(uint row) {
  VECTOR own[ITEMS];
  float mean = 0.0, square = 0.0;
  [[unroll]] for (uint item = 0u; item < ITEMS; ++item) {
    own[item] = source_vector(row, id + item * THREADS);
    if (NORM == rows_layer_norm)
      [[unroll]] for (uint i = 0u; i < WIDTH; ++i)
        mean += element(own[item], i);
  }
  if (NORM == rows_layer_norm)
    mean = group_sum(mean, 0u) / float(DEPTH);
  [[unroll]] for (uint item = 0u; item < ITEMS; ++item)
    [[unroll]] for (uint i = 0u; i < WIDTH; ++i)
      if ((id + item * THREADS) * WIDTH + i < DEPTH) {
        const float distance = element(own[item], i) - mean;
        square += distance * distance;
      }
  const uint slot = NORM == rows_layer_norm ? 1u : row % 2u;
  const float factor = 1.0 / sqrt(group_sum(square, slot) / float(DEPTH) + epsilon);
  [[unroll]] for (uint item = 0u; item < ITEMS; ++item) {
    const uint v = id + item * THREADS;
    float e[WIDTH]; // scale and shift are zeros beyond the row's end
    [[unroll]] for (uint i = 0u; i < WIDTH; ++i) {
      e[i] = (element(own[item], i) - mean) * factor * element(own_scale[item], i);
      if ((FLAGS & projections_shift) != 0u)
        e[i] += element(own_shift[item], i);
    }
    if (v < VECTORS)
      kept_rows[row * VECTORS + v] = vector_of(e);
  }
}

/// Whether column n of a head is rotated, as the first or the second of pair p.
bool find_pair(uint n, out uint p, out bool first) {
  const uint d = n % width;
  first = INTERLEAVED ? d % 2u == 0u : d < pairs;
  p = INTERLEAVED ? d / 2u : first ? d : d - pairs;
  return p < pairs;
}

/// Asks for the angle of the invocation's result.
void load_angle() {
  const uint row = lane / COLUMNS, n = column + lane % COLUMNS;
  uint p;
  bool first;
  if (lane >= SUMS || n >= parts[part].y || !is_rotated(part) || !find_pair(n, p, first))
    return;
  const uint b = row / sequence, at = p + (first ? 0u : second);
  uint cos_row = b * cos_batch + (row - b * sequence) * table_row, sin_row = cos_row - b * cos_batch + b * sin_batch;
  if ((FLAGS & projections_positions) != 0u) {
    cos_row = min(positions[row].x, table_rows - 1u) * table_row;
    sin_row = cos_row;
  }
  cosine = float(cosines[cos_row + at]);
  sine = float(sines[sin_row + at]);
}

/// Normalises the rows and asks for what is needed at the end.
void normalise_rows() {
  if (ROTATES)
    load_angle();
  if (!NORMALISED)
    return;
  [[unroll]] for (uint item = 0u; item < ITEMS; ++item) {
    own_scale[item] = scale_vector(id + item * THREADS);
    if ((FLAGS & projections_shift) != 0u)
      own_shift[item] = shift_vector(id + item * THREADS);
  }
  for (uint row = 0u; row < ROWS; ++row)
    normalise_row(row);
  barrier();
}

/// Sum i of team t, once all have been put down.
float team_sum(uint t, uint i) {
#ifdef PLAIN
  return team_sums[i * THREADS + t * LANES];
#else
  const uint subgroups = LANES / gl_SubgroupSize;
  float sum = 0.0;
  for (uint s = 0u; s < subgroups; ++s)
    sum += team_sums[i * (THREADS / 2u) + t * subgroups + s];
  return sum;
#endif
}

/// Adds the invocations' sums up, for `team_sum`.
void add_up() {
#ifdef PLAIN
  [[unroll]] for (uint i = 0u; i < SUMS; ++i)
    team_sums[i * THREADS + id] = sums[i];
  barrier();
  for (uint reach = LANES / 2u; reach > 0u; reach /= 2u) {
    if (lane < reach)
      [[unroll]] for (uint i = 0u; i < SUMS; ++i)
        team_sums[i * THREADS + id] += team_sums[i * THREADS + id + reach];
    barrier();
  }
#else
  [[unroll]] for (uint i = 0u; i < SUMS; ++i) {
    const float sum = subgroupAdd(sums[i]);
    if (gl_SubgroupInvocationID == 0u)
      team_sums[i * (THREADS / 2u) + gl_SubgroupID] = sum;
  }
  barrier();
#endif
}

// Of the including kernel: bias[n] of a part; writes element `at` of a part's result.
float bias_of(uint p, uint n);
void write(uint p, uint at, float value);

/// Part p's end of a sum.
float ended(uint p, uint row, uint n, float sum) {
  if ((FLAGS >> p & 1u) != 0u)
    sum += bias_of(p, n);
  if ((FLAGS & projections_residual) != 0u)
    sum += float(residual[row * parts[0].y + n]);
  if (p == 0u)
    return activate(ACTIVATION_0, sum, numbers[0].x, numbers[0].y);
  if (p == 1u)
    return activate(ACTIVATION_1, sum, numbers[1].x, numbers[1].y);
  return activate(ACTIVATION_2, sum, numbers[2].x, numbers[2].y);
}

/// The invocation's result, column n of a row, rotated.
float rotated(uint row, uint n, float own) {
  uint p;
  bool first;
  if (!find_pair(n, p, first))
    return own;
  const uint other = INTERLEAVED ? (first ? n + 1u : n - 1u) : first ? n + pairs : n - pairs;
  const bool same_slot = INTERLEAVED && COLUMNS > 1u;
  const float value = ended(part, row, other, team_sum(same_slot ? team : team ^ 1u, same_slot ? lane ^ 1u : lane));
  return first ? own * cosine - value * sine : own * cosine + value * sine;
}

/// Writes the results of the group's teams.
void finish() {
  add_up();
  const uint row = lane / COLUMNS, n = column + lane % COLUMNS;
  if (lane >= SUMS || n >= parts[part].y || (GATED && part == 1u))
    return;
  float value = ended(part, row, n, team_sum(team, lane));
  if (GATED)
    value *= ended(1u, row, n, team_sum(team + 1u, lane));
  if (ROTATES && is_rotated(part))
    value = rotated(row, n, value);
  write(part, row * parts[part].y + n, value);
}

#endif
