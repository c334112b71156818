// Which of the groups that each have a part of a result is the last to have written it, so that it can join them: no
// wave of its own.
//
// Groups of one `flat_group()` make parts of one result; they differ in z. No group waits: a group that is not the last
// one ends. Parts are in `coherent` buffers. A shader that includes it declares the counters `arrived`, one for each
// `flat_group()`, which are zero when the launch begins; the last group leaves its counter zero (`forget_groups`).
#ifndef TROUPE_LAST_GROUP
#define TROUPE_LAST_GROUP

shared bool is_last;

/// Counts this group, whose part is written; returns whether it is the last one. For all invocations of it: each has
/// what it has written in the device's memory before the group is counted, and of the last group each reads after a
/// barrier of its own. One invocation's barriers instead would take 0.5 us longer.
bool is_last_group() {
  memoryBarrierBuffer();
  barrier();
  if (gl_LocalInvocationID.x == 0)
    is_last = atomicAdd(arrived[flat_group()], 1) == gl_NumWorkGroups.z - 1;
  barrier();
  if (is_last)
    memoryBarrierBuffer();
  return is_last;
}

/// For the last group, when all is done.
void forget_groups() {
  if (gl_LocalInvocationID.x == 0)
    arrived[flat_group()] = 0;
}

#endif
