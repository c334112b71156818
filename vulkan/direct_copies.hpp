// Copies of values straight between the arena and where a run's values lie, without staging: the host's memory
// (host_imports.hpp), and the memory of values that stay on the GPU (residents.hpp).
//
// A run's values may lie anywhere, so these copies are in command buffers of their own, around the chunk's: recorded again
// only when some value lies elsewhere than in the run before on the same slot, which blocks that come back rarely do, or has
// another size: exactly a binding's own bytes are copied, because a host tensor holds no more.
//
// The chunk's own commands copy from staging memory what is not direct; where such a value is on the GPU already, it is copied
// to the place where the host would have put it.
#pragma once

#include "device/device.hpp"
#include "vulkan/chunk_recorder.hpp"
#include "vulkan/host_imports.hpp"
#include "vulkan/residents.hpp"

namespace troupe::vulkan {

/// One submission and what it keeps alive until it is complete.
struct run_values {
  chunk_work work;
  std::vector<tensor> uploads;     // in blocks
  std::vector<tensor> downloads;   // by download of the chunk; undefined where it is not direct
  std::vector<device_tensor> kept; // by download; empty where none stays
};

/// What copies are made with.
struct copy_tools {
  host_imports& imports;
  residents& own;
  bool poison = false; // see vulkan_device_options
};

/// Prepares the copies of `values.work`, a run of `bound`: brings uploads into blocks, makes the tensors of the downloads, and
/// records what is not recorded. Returns the command buffers of the chunk, in order.
std::vector<VkCommandBuffer> prepare_copies(recorded_chunk& r, const installed_chunk& c, const bound_plan& bound,
                                            const arena_slot& slot, const copy_tools& tools, run_values& values);

/// Returns whether download `i` of a chunk goes to the host, and whether it stays.
bool goes_to_host(const chunk_work& work, size_t i);
bool stays(const chunk_work& work, size_t i);

} // namespace troupe::vulkan
