// Command buffers of one chunk in one arena slot: recorded once, submitted as often as the chunk runs.
//
// Parameters of dynamic nodes are in the slot's parameter buffer, which is written before a submission if the slot ran
// another binding before; their group counts too, so that they dispatch indirectly, unless these are fixed
// (`launch::fixed_groups`).
//
// Order of a chunk: wait for all earlier work of the queue; copy uploads from staging memory; the launches, with one
// memory barrier before each wave (and each step inside one); copy downloads to staging memory; make them visible to
// the host. What kernels use where it is staged (staged_values.hpp) is not copied. If device memory is the host's own
// (unified), the first chunk's uploads and the last chunk's downloads are not staged.
#pragma once

#include "vulkan/commands.hpp"
#include "vulkan/gpu_program.hpp"
#include "vulkan/host_imports.hpp"
#include "vulkan/row_copies.hpp"

#include <optional>
#include <span>

namespace troupe::vulkan {

/// What one execution at a time uses.
struct arena_slot {
  const allocation* arena = nullptr; // of the layout's slot
  std::shared_ptr<const allocation> scratch;
  allocation parameters; // mapped; empty if no node is dynamic
  allocation counters;   // zero between executions; empty if no call counts
};

/// Where the bytes of a value that stays on the GPU are.
struct value_place {
  uint64_t id = 0; // of the memory; never used twice
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize offset = 0;
  VkDeviceSize bytes = 0; // room included
};

/// A copy between the arena (or a weight that is an output) and where a run's value is.
struct direct_copy {
  uint64_t id = 0;        // of the memory at the host's end, or of the value that stays on the GPU
  bool resident = false;  // whether it is the latter
  bool by_kernel = false; // if one can: both ends are in the GPU's own memory, or a peer's work made the bytes
  VkBuffer from = VK_NULL_HANDLE, to = VK_NULL_HANDLE;
  VkDeviceSize from_offset = 0, to_offset = 0, bytes = 0;

  bool operator==(const direct_copy&) const = default;
};

/// A chunk's copies before or after its commands, in one command buffer; recorded anew when a run's values are
/// elsewhere than the last one's, or have other sizes (direct_copies.hpp).
struct recorded_copies {
  VkCommandBuffer commands = VK_NULL_HANDLE;        // null until it is needed
  std::optional<std::vector<direct_copy>> recorded; // nullopt before the first recording
  dispatched_copies dispatched;                     // those by a kernel
};

/// A recorded chunk (see the top of this file).
struct recorded_chunk {
  command_pool_handle pool, copy_pool; // for work, and for the lanes of copies
  descriptor_pool_handle descriptors;
  query_pool_handle timestamps;
  uint32_t timestamp_count = 0;
  bool timed = false;
  // Begin and end of copies in, then of copies out; what is not timed has the last one alone. Null if the host cannot
  // reset them.
  query_pool_handle copy_timestamps;
  allocation upload_staging, download_staging; // empty if the arena is used directly
  host_end exchanged;                          // what peers read where it is; without bytes if they read nothing
  dispatched_copies to_peers;                  // into it
  VkCommandBuffer commands = VK_NULL_HANDLE;
  std::array<recorded_copies, 2> copies_in, copies_out; // in the lane for work, and beside it
  std::array<std::vector<recorded_copies>, 2> pieces;   // of large uploads, but the last, in the same lanes
  uint64_t used = 0;                                    // when it ran last
};

/// What a chunk's commands do besides the plain ones: put a timestamp after each launch, not only at the chunk's ends;
/// or take inputs that the host has narrowed (`installed_transfer::narrowed`).
enum class recording : uint8_t { plain, timed, narrowed };

struct recording_options {
  bool unified = false; // see above; not if the arena is poisoned
};

/// Where memory comes from through which values pass, and what copies those for peers.
struct staging_tools {
  memory_pool& uploads;
  memory_pool& downloads;
  host_imports& exchanged;
  row_copier& to_peers;
};

/// Records chunk `c` on `slot`; `caches`: where those are that grow in place, in the order of `gpu_program::caches`.
recorded_chunk record_chunk(device_context& context, const pipelines& kernels, const installed_chunk& c,
                            const arena_slot& slot, const staging_tools& staging, const recording_options& options,
                            recording how, std::span<const value_place> caches);

/// Resets the queries of a chunk that is to run, if the host can: what the GPU resets, its first kernel waits for.
void reset_queries(const device_context& context, const recorded_chunk& chunk);

/// The memory that a range is in, in a slot.
const allocation& memory_of(const bound_range& r, const arena_slot& slot);
/// The buffer and offset of a range in a slot.
std::pair<VkBuffer, VkDeviceSize> resolve(const bound_range& r, const arena_slot& slot);
/// The same of a range that may be in the staging memory of a chunk.
std::pair<VkBuffer, VkDeviceSize> resolve(const bound_range& r, const arena_slot& slot, const recorded_chunk& chunk);

/// Where the host finds or puts the bytes of a transfer that is not direct.
struct host_place {
  const allocation* memory = nullptr;
  int64_t offset = 0;
};
host_place upload_place(const recorded_chunk& r, const installed_transfer& t, const arena_slot& slot);
host_place download_place(const recorded_chunk& r, const installed_transfer& t, const arena_slot& slot);

} // namespace troupe::vulkan
