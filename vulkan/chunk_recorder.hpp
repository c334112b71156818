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
};

struct recording_options {
  bool unified = false; // see above; not together with poison
  bool poison = false;  // fill the arena with NaN before the first chunk
  bool trace = false;   // a timestamp behind each launch, not only at the chunk's ends
};

/// Records chunk `c` of `p` on `slot`.
recorded_chunk record_chunk(device_context& context, const pipelines& kernels, const installed_plan& p,
                            const installed_chunk& c, const arena_slot& slot, memory_pool& uploads,
                            memory_pool& downloads, const recording_options& options);

/// Where the host finds or puts the bytes of a transfer.
struct host_place {
  const allocation* memory = nullptr;
  int64_t offset = 0;
};
host_place upload_place(const recorded_chunk& r, const installed_transfer& t, const arena_slot& slot);
host_place download_place(const recorded_chunk& r, const installed_transfer& t, const arena_slot& slot);

} // namespace troupe::vulkan
