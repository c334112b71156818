// Command buffers of one chunk in one arena slot: recorded once, submitted as often as the chunk runs.
//
// Order of a chunk: wait for all earlier work of the queue; copy uploads from staging memory; the launches, with one memory
// barrier before each wave (and each step inside one); copy downloads to staging memory; make them visible to the host.
// Where device memory is the host's own (unified), the first chunk's uploads and the last chunk's downloads are not staged.
#pragma once

#include "vulkan/commands.hpp"
#include "vulkan/installed_plan.hpp"

namespace troupe::vulkan {

/// What one execution at a time uses.
struct arena_slot {
  allocation arena, scratch;
};

/// A recorded chunk (see the top of this file).
struct recorded_chunk {
  command_pool_handle pool;
  descriptor_pool_handle descriptors;
  query_pool_handle timestamps;
  uint32_t timestamp_count = 0;
  allocation upload_staging, download_staging; // empty where the arena is used directly
  VkCommandBuffer commands = VK_NULL_HANDLE;
  /// Copies straight from and to the host's memory, before and after `commands`: recorded anew when a run's tensors lie
  /// elsewhere than the last one's (direct_copies.hpp).
  VkCommandBuffer copies_in = VK_NULL_HANDLE, copies_out = VK_NULL_HANDLE;
  std::vector<std::pair<uint64_t, VkDeviceSize>> recorded_in, recorded_out; // block and offset, by transfer
};

struct recording_options {
  bool unified = false; // see above; not together with poison
  bool poison = false;  // fill the arena with NaN before the first chunk
};

/// Records chunk `c` of `p` on `slot`; `timed` puts a timestamp behind each launch, not only at the chunk's ends.
recorded_chunk record_chunk(device_context& context, const pipelines& kernels, const installed_plan& p,
                            const installed_chunk& c, const arena_slot& slot, memory_pool& uploads,
                            memory_pool& downloads, const recording_options& options, bool timed);

/// The buffer and offset of a range in a slot.
std::pair<VkBuffer, VkDeviceSize> resolve(const bound_range& r, const arena_slot& slot);

/// Where the host finds or puts the bytes of a transfer that is not direct.
struct host_place {
  const allocation* memory = nullptr;
  int64_t offset = 0;
};
host_place upload_place(const recorded_chunk& r, const installed_transfer& t, const arena_slot& slot);
host_place download_place(const recorded_chunk& r, const installed_transfer& t, const arena_slot& slot);

} // namespace troupe::vulkan
