// Copies of values straight between the arena and where a run's values are, without staging: the host's memory
// (host_imports.hpp), and the memory of values that stay on the GPU (residents.hpp). Caches that grow in place are not
// copied.
//
// A run's values may be anywhere, so these copies are in command buffers of their own, around the chunk's: recorded
// again only when some value is elsewhere than in the run before on the same slot, which blocks that come back rarely
// do, or has another size: exactly a binding's own bytes are copied, because a host tensor holds no more. Values that
// stay, and those that peers have promised, move by a kernel (row_copies.hpp) in the lane for work.
//
// Large uploads that the host has to copy to memory of ours first go in pieces, so that the GPU copies one while the
// host copies the next.
//
// The chunk's own commands copy from staging memory what is not direct; if such a value is on the GPU already, it is
// copied to the place where the host would have put it.
#pragma once

#include "device/device.hpp"
#include "vulkan/chunk_recorder.hpp"
#include "vulkan/host_imports.hpp"
#include "vulkan/peers.hpp"
#include "vulkan/residents.hpp"
#include "vulkan/timeline.hpp"

namespace troupe::vulkan {

/// What copies a run of a chunk has; sizes are those moved to and from the host's memory.
struct copy_needs {
  bool in = false, out = false;
  int64_t bytes_in = 0, bytes_out = 0;
  /// Whether values are read that stay on the GPU: what made them may be in flight in the lane for work.
  bool reads_residents = false;
  /// Whether values are read that peers have promised, or made that are promised to them: peers know that lane only.
  bool reads_promised = false, promises = false;
};

/// Where the copies before and after a chunk's commands run; nullopt if there are none.
struct copy_lanes {
  std::optional<lane> in, out;
};

/// Whether the GPU has other work while a chunk's values come, and while they go; copies out of the chunk before are
/// such work: after them in their lane, a chunk's own do not share the link with them.
struct meanwhile {
  bool in = false, out = false;
};

/// Chooses the lanes of a run's copies: beside the work if there is other work meanwhile and the copies are large
/// enough to pay for the wait between queues.
copy_lanes choose_lanes(const copy_needs& needs, const device_context& context, const meanwhile& busy);

/// A part of an upload, which the host fetches before the GPU copies it.
struct upload_piece {
  size_t upload = 0;                         // of `run_values::uploads`
  int64_t end = 0;                           // of its bytes in the upload's
  VkCommandBuffer commands = VK_NULL_HANDLE; // null: its copy is among `chunk_commands::copies_in`
};

/// One submission and what it keeps alive until it is complete.
struct run_values {
  chunk_work work;
  std::vector<host_end> uploads;   // those that are direct
  std::vector<host_end> downloads; // by download of the chunk; empty if it is not direct
  std::vector<device_tensor> kept; // by download, null if it does not stay; empty if none does
  row_moves before;                // copies of caches, submitted before the chunk
  copy_lanes lanes;
  peer_links peers;           // with others than the lane for work, none
  std::vector<bool> promised; // by download; empty if none is
};

/// What copies are made with.
struct copy_tools {
  device_context& context;
  host_imports& imports;
  residents& own;
  row_copier& inside;
  peers& set;
  meanwhile busy;
  bool poison = false; // see vulkan_device_options
};

/// The command buffers of one run of a chunk, in their order; null if there is nothing to copy.
struct chunk_commands {
  std::vector<upload_piece> pieces; // before `copies_in`, which has the last one's copy
  VkCommandBuffer copies_in = VK_NULL_HANDLE, work = VK_NULL_HANDLE, copies_out = VK_NULL_HANDLE;
  end_stamp end; // of the last of them
};

/// Prepares the copies of `values.work`, a run of `bound`: finds where uploads are, and which peers to wait for, makes
/// the tensors of the downloads, chooses `values.lanes` and what can be promised, and records what is not recorded.
chunk_commands prepare_copies(recorded_chunk& r, const installed_chunk& c, const bound_plan& bound,
                              const arena_slot& slot, const copy_tools& tools, run_values& values);

} // namespace troupe::vulkan
