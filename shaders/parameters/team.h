// Who computes a row in team.glsl.
#include "block.h"

/// A single invocation (rows that are side by side in memory, so that neighbouring invocations read neighbouring
/// elements), a subgroup (short rows: no barrier at all), or LANES invocations of a workgroup.
CONSTANT team_invocation = 0, team_subgroup = 1, team_group = 2;
