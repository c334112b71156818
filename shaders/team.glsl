// Teams of invocations that share a row of elements, with sums, maxima and minima over a team.
//
// TEAM says what a team is (parameters/team.h). With subgroup arithmetic LANES is the workgroup, whatever the size of a
// subgroup is; without it (PLAIN) a tree in shared memory adds up, and LANES is a power of two. ROWS is the number of
// rows of a workgroup.
//
// The including kernel defines `void team_row(uint row, bool present)`. If TEAM is team_group, every invocation calls
// it, with present false after the last row: it then reads and writes nothing, but takes part in all reductions. `slot`
// of a reduction must differ from that of the reduction before.
#ifndef TROUPE_TEAM
#define TROUPE_TEAM

#ifndef PLAIN
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#include "common.glsl"
#include "parameters/team.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint TEAM = team_group;
layout(constant_id = 2) const uint LANES = 256;
layout(constant_id = 3) const uint ROWS = 1;

uint lane = 0;  // of this invocation in its team
uint lanes = 1; // invocations of a team

#ifdef PLAIN

shared float team_floats[THREADS];
shared uint team_uints[THREADS];

#define TEAM_REDUCE(NAME, TYPE, MEMORY, COMBINE)                        \
  TYPE NAME(TYPE x, uint slot) {                                        \
    if (TEAM == team_invocation)                                        \
      return x;                                                         \
    const uint id = gl_LocalInvocationID.x;                             \
    MEMORY[id] = x;                                                     \
    barrier();                                                          \
    for (uint reach = LANES / 2; reach > 0; reach /= 2) {               \
      if (lane < reach)                                                 \
        MEMORY[id] = COMBINE(MEMORY[id], MEMORY[id + reach]);           \
      barrier();                                                        \
    }                                                                   \
    x = MEMORY[id - lane];                                              \
    barrier();                                                          \
    return x;                                                           \
  }
#define REDUCE(NAME, TYPE, MEMORY, COMBINE, SUBGROUP) TEAM_REDUCE(NAME, TYPE, MEMORY, COMBINE)

#else

shared float team_floats[2 * THREADS];
shared uint team_uints[2 * THREADS];

#define REDUCE(NAME, TYPE, MEMORY, COMBINE, SUBGROUP)                   \
  TYPE NAME(TYPE x, uint slot) {                                        \
    if (TEAM == team_invocation)                                        \
      return x;                                                         \
    x = SUBGROUP(x);                                                    \
    if (TEAM == team_subgroup)                                          \
      return x;                                                         \
    if (gl_SubgroupInvocationID == 0)                                   \
      MEMORY[slot * THREADS + gl_SubgroupID] = x;                       \
    barrier();                                                          \
    x = MEMORY[slot * THREADS];                                         \
    for (uint i = 1; i < gl_NumSubgroups; ++i)                          \
      x = COMBINE(x, MEMORY[slot * THREADS + i]);                       \
    return x;                                                           \
  }

#endif

float add_floats(float a, float b) { return a + b; }
float multiply_floats(float a, float b) { return a * b; }

REDUCE(team_sum, float, team_floats, add_floats, subgroupAdd)
REDUCE(team_max, float, team_floats, max, subgroupMax)
REDUCE(team_product, float, team_floats, multiply_floats, subgroupMul)
REDUCE(team_min_index, uint, team_uints, min, subgroupMin)
REDUCE(team_max_key, uint, team_uints, max, subgroupMax)

void team_row(uint row, bool present);

/// Calls team_row for the rows of this invocation's team.
void run_teams(uint rows) {
  const uint id = gl_LocalInvocationID.x;
  if (TEAM == team_invocation) {
    const uint row = flat_group() * THREADS + id;
    if (row < rows)
      team_row(row, true);
    return;
  }
#ifndef PLAIN
  if (TEAM == team_subgroup) {
    lane = gl_SubgroupInvocationID;
    lanes = subgroupAdd(1u);
    const uint first = flat_group() * ROWS;
    for (uint row = first + gl_SubgroupID; row < min(rows, first + ROWS); row += gl_NumSubgroups)
      team_row(row, true);
    return;
  }
#endif
  lane = id % LANES;
  lanes = LANES;
  const uint row = flat_group() * ROWS + id / LANES;
  team_row(row, row < rows);
}

#endif
