// Products of few rows by up to three matrices, the rows perhaps normalised first (src/ops/composed/projections.cpp):
// what kernels of float matrices (projections.comp) and of packed ones (matmul_nbits.comp) share.
//
// Columns are dealt out in slots of COLUMNS, part after part; if they are gated, a slot has as many of part 0 as of
// part 1, in turn. A team of LANES invocations computes a slot for all rows. Each group normalises the rows for itself,
// into shared memory: they are few, and every other group does the same meanwhile. So that this costs nothing but their
// own time, all that a group waits for is asked for first, the rows before the weights, which take longer:
//
//   begin(); ask_for_rows(); load weights of a place; ask_for_ends(); keep_rows(); add up sums, reading the rows by
//     row_vector(); finish()
//
// Columns of a part may be rotated in pairs as rotary.comp does: then a pair's columns are in neighbouring slots, or
// one slot, and each group has an even number of teams. The including kernel says where the tables are bound: ANGLES is
// the first of three bindings.
//
// Constants 0 … 11 as below, the kernel's own after them. LANES and THREADS are powers of two, whole subgroups, ROWS ·
// COLUMNS ≤ LANES; if gated, COLUMNS is even. PLAIN: without subgroup arithmetic. A kernel may define ROW_VECTORS, the
// vectors that a row is kept as, zeros beyond its end, KEPT_AT(row, v), where each is kept, KEEPS_ROWS: whether rows
// are kept that are not normalised too, and PUTS_DOWN, if it has a function of its own that keeps a vector.
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
/// Columns of the result that a slot has.
const uint RESULTS = GATED ? COLUMNS / 2u : COLUMNS;
const bool NORMALISED = NORM != rows_as_they_are;
#ifndef ROW_VECTORS
#define ROW_VECTORS ((DEPTH + 7u) / 8u * 8u / WIDTH)
#define KEPT_AT(row, v) ((row) * VECTORS + (v))
#define KEEPS_ROWS NORMALISED
#endif
/// Vectors of a row that are multiplied: those beyond DEPTH, if any, are zeros.
const uint VECTORS = ROW_VECTORS;
const uint KEPT = KEEPS_ROWS ? ROWS * VECTORS : 1u;
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
float sums[SUMS]; // of the invocation: row by row, a row's columns together

/// A slot: its part (if it is not gated) and its first column there.
struct place {
  uint part, column;
};

/// What is added to the result that an invocation writes, as it is in memory: to convert it would be to wait for it.
struct ends {
  T bias, bias_up, residual, cosine, sine;
};

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
}

void clear_sums() {
  [[unroll]] for (uint i = 0u; i < SUMS; ++i)
    sums[i] = 0.0;
}

// Of a part, by constant indices: what is at known places in the block is known when the kernel is compiled
// (vulkan/block_constants.hpp).
uint first_slot_of(uint part) { return part == 0u ? parts[0].x : part == 1u ? parts[1].x : parts[2].x; }
uint columns_of(uint part) { return part == 0u ? parts[0].y : part == 1u ? parts[1].y : parts[2].y; }

/// Where the team's slot is, if group number `group` runs.
place place_of(uint group) {
  const uint slot = group * (THREADS / LANES) + team;
  if (GATED)
    return place(0u, slot * RESULTS);
  uint part = 0u;
  if (PARTS > 1u && slot >= parts[1].x)
    part = PARTS > 2u && slot >= parts[2].x ? 2u : 1u;
  const uint own = slot - first_slot_of(part);
  return place(part, ROTATES && !INTERLEAVED && is_rotated(part) ? paired_column(own) : own * COLUMNS);
}

#include "projection_rows.glsl"

/// Writes `value` to element `at` of a part's results: what `write` of the including kernel is made of.
#define WRITE(RESULTS, WIDE)                \
  if ((FLAGS & projections_wide) != 0u)     \
    WIDE[at] = value;                       \
  else                                      \
    RESULTS[at] = T(value);

// Whether each subgroup has the sums of a team that no other team needs.
#define ALONE (LANES == gl_SubgroupSize && !ROTATES)

/// Adds the invocations' sums up, for `total`.
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
  [[unroll]] for (uint i = 0u; i < SUMS; ++i)
    sums[i] = subgroupAdd(sums[i]);
  if (ALONE)
    return;
  if (gl_SubgroupInvocationID == 0u)
    [[unroll]] for (uint i = 0u; i < SUMS; ++i)
      team_sums[i * (THREADS / 2u) + gl_SubgroupID] = sums[i];
  barrier();
#endif
}

/// Sum i of team t, which is the invocation's own unless columns are rotated, once all have been added up.
float total(uint t, uint i) {
#ifdef PLAIN
  return team_sums[i * THREADS + t * LANES];
#else
  float sum = 0.0;
  if (ALONE) {
    [[unroll]] for (uint s = 0u; s < SUMS; ++s)
      sum = s == i ? sums[s] : sum;
    return sum;
  }
  const uint subgroups = LANES / gl_SubgroupSize;
  for (uint s = 0u; s < subgroups; ++s)
    sum += team_sums[i * (THREADS / 2u) + t * subgroups + s];
  return sum;
#endif
}

// Of the including kernel: bias[n] of a part; writes element `at` of a part's result.
T bias_of(uint p, uint n);
void write(uint p, uint at, float value);

bool has_bias(uint p) {
  return (FLAGS >> p & 1u) != 0u;
}

/// Whether the invocation writes a result of a slot: that of row lane / RESULTS, column lane % RESULTS.
bool writes(place at) {
  return lane < ROWS * RESULTS && at.column + lane % RESULTS < columns_of(at.part);
}

/// Whether column n of a head is rotated, as the first or the second of pair p.
bool find_pair(uint n, out uint p, out bool first) {
  const uint d = n % width;
  first = INTERLEAVED ? d % 2u == 0u : d < pairs;
  p = INTERLEAVED ? d / 2u : first ? d : d - pairs;
  return p < pairs;
}

/// Asks for the angle of column n of a row, if it is rotated.
void ask_for_angle(uint row, uint n, inout ends e) {
  uint p;
  bool first;
  if (!find_pair(n, p, first))
    return;
  const uint b = row / sequence, at = p + (first ? 0u : second);
  uint cos_row = b * cos_batch + (row - b * sequence) * table_row, sin_row = cos_row - b * cos_batch + b * sin_batch;
  if ((FLAGS & projections_positions) != 0u) {
    cos_row = min(positions[row].x, table_rows - 1u) * table_row;
    sin_row = cos_row;
  }
  e.cosine = cosines[cos_row + at];
  e.sine = sines[sin_row + at];
}

ends ask_for_ends(place at) {
  ends e = ends(T(0), T(0), T(0), T(0), T(0));
  if (!writes(at))
    return e;
  const uint n = at.column + lane % RESULTS;
  if (has_bias(at.part))
    e.bias = bias_of(at.part, n);
  if (GATED && has_bias(1u))
    e.bias_up = bias_of(1u, n);
  if ((FLAGS & projections_residual) != 0u)
    e.residual = residual[lane / RESULTS * parts[0].y + n];
  if (ROTATES && is_rotated(at.part))
    ask_for_angle(lane / RESULTS, n, e);
  return e;
}

/// Part p's end of a sum.
float ended(uint p, float sum, T bias, T added) {
  if (has_bias(p))
    sum += float(bias);
  if ((FLAGS & projections_residual) != 0u)
    sum += float(added);
  if (p == 0u)
    return activate(ACTIVATION_0, sum, numbers[0].x, numbers[0].y);
  if (p == 1u)
    return activate(ACTIVATION_1, sum, numbers[1].x, numbers[1].y);
  return activate(ACTIVATION_2, sum, numbers[2].x, numbers[2].y);
}

/// A result, column n of a row, rotated.
float rotated(uint part, uint row, uint n, float own, ends e) {
  uint p;
  bool first;
  if (!find_pair(n, p, first))
    return own;
  const uint other = INTERLEAVED ? (first ? n + 1u : n - 1u) : first ? n + pairs : n - pairs;
  const bool same_slot = INTERLEAVED && COLUMNS > 1u;
  const T bias = has_bias(part) ? bias_of(part, other) : T(0);
  const T added = (FLAGS & projections_residual) != 0u ? residual[row * parts[0].y + other] : T(0);
  const float value = ended(part, total(same_slot ? team : team ^ 1u, same_slot ? lane ^ 1u : lane), bias, added);
  return first ? own * float(e.cosine) - value * float(e.sine) : own * float(e.cosine) + value * float(e.sine);
}

/// Writes the results of the group's teams.
void finish(place at, ends e) {
  add_up();
  const uint row = lane / RESULTS, n = at.column + lane % RESULTS;
  const uint first = row * COLUMNS + lane % RESULTS * (COLUMNS / RESULTS);
  if (!writes(at))
    return;
  float value = ended(at.part, total(team, first), e.bias, e.residual);
  if (GATED)
    value *= ended(1u, total(team, first + 1u), e.bias_up, e.residual);
  if (ROTATES && is_rotated(at.part))
    value = rotated(at.part, row, n, value, e);
  write(at.part, row * columns_of(at.part) + n, value);
}

#endif
