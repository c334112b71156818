// Copies of large values straight between the host's memory and the arena, without staging (host_imports.hpp).
//
// A run's tensors may lie anywhere, so these copies are in command buffers of their own, around the chunk's: recorded again
// only when some tensor lies elsewhere than in the run before on the same slot, which blocks that come back rarely do, or has
// another size: exactly a binding's own bytes are copied, because a host tensor holds no more.
#pragma once

#include "vulkan/chunk_recorder.hpp"
#include "vulkan/host_imports.hpp"

namespace troupe::vulkan {

/// What one submission keeps alive until it is complete.
struct direct_tensors {
  std::vector<tensor> uploads;   // in blocks
  std::vector<tensor> downloads; // by download of the chunk; undefined where it is not direct
};

/// Prepares the copies of a run of `bound`: brings uploads into blocks, makes the downloads' tensors, and records what is not recorded.
/// Returns the command buffers of the chunk, in order.
std::vector<VkCommandBuffer> prepare_copies(recorded_chunk& r, const installed_chunk& c, const bound_plan& bound,
                                            const arena_slot& slot, const std::vector<tensor>& uploads,
                                            host_imports& imports, direct_tensors& kept);

} // namespace troupe::vulkan
