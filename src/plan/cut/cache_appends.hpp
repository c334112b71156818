// Caches that may grow where they are: troupe.Append of an input of the program that leaves as an output.
//
// Where a run takes such an input from its device's memory and leaves the output there, the device may write the new
// rows after the old ones instead of copying all of them. The plan only says which calls allow it; whether a run does
// so is decided by where its values are.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// See the top of this file.
struct cache_append {
  chunk_id chunk = 0;
  node_id node = -1; // troupe.Append
  value_id past = no_value, fresh = no_value, present = no_value;
  /// The Cast of `fresh` from float16 to float32, for this node alone: the append converts. -1: there is none.
  node_id widening = -1;
  size_t upload = 0, download = 0; // of `past` and `present` in the chunk
};

/// Returns the calls of GPUs' chunks that may be done in place, in the order of the chunks and their nodes: the only
/// chunk of its device in its segment makes the output, which no node reads, and all others that read the input are
/// calls in this chunk that take it as a cache (`is_cache_input`). Either all of them widen or none does, so that one
/// kernel can do several.
std::vector<cache_append> find_cache_appends(const plan& p);

} // namespace troupe
