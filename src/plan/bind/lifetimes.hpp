// Lifetimes: when the storage of each value is in use on its device, in positions along the device's order of nodes or
// waves.
//
// They are structural (no sizes), so they are found once for each plan; `bind_segment` adds sizes and lays out the
// arena. On host-memory devices a position is a node, because nodes run one after the other there. On others it is a
// wave: a value is live through the whole wave that makes it and the last one that reads it, an upload from the
// beginning of its chunk, a download to its end. So arena space is reused between waves only, and reuse adds no
// barrier.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Calls `f` with the nodes of each position of a chunk: those of a wave, or single ones if it has no waves.
template <class F>
void for_each_step(const chunk& c, F&& f) {
  const uint32_t steps = c.wave_begin.empty() ? static_cast<uint32_t>(c.nodes.size()) : c.wave_count();
  for (uint32_t s = 0; s < steps; ++s)
    f(c.wave_begin.empty() ? std::span(c.nodes).subspan(s, 1) : c.wave(s));
}

/// Returns `plan::lifetimes`. Needs every other structural field of `p`.
std::vector<device_lifetimes> find_lifetimes(const plan& p);

} // namespace troupe
