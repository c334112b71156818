// One device's part of a bound plan, ready to be recorded: which pipelines run with which bytes, wave by wave.
//
// Everything here is the same for all arena slots: kernels, weights, parameter blocks, offsets. A slot adds memory and
// command buffers (chunk_recorder.hpp).
#pragma once

#include "plan/bound_plan.hpp"
#include "vulkan/device_weights.hpp"
#include "vulkan/pipelines.hpp"

#include <map>

namespace troupe::vulkan {

/// Bytes that a launch binds: in the slot's arena or scratch memory, or at a fixed place.
struct bound_range {
  enum class where : uint8_t { arena, scratch, fixed };
  where place = where::arena;
  const allocation* fixed = nullptr;
  int64_t offset = 0; // within the arena, the scratch memory, or the allocation
  int64_t bytes = 0;
};

/// A dispatch whose kernel and places are known.
struct installed_launch {
  pipeline_key key;
  node_id call = -1;
  std::string kernel; // name of the alternative, for profiles
  std::array<uint32_t, 3> groups{1, 1, 1};
  int64_t params = 0; // offset in `installed_plan::constants`
  std::vector<bound_range> buffers;
  /// Whether everything before must be complete: the launch begins a wave or a step.
  bool barrier_before = false;
};

/// A value that enters or leaves a chunk.
struct installed_transfer {
  value_id value = no_value;
  dtype type = dtype::undefined;
  shape dims;
  bound_range place;
  /// Offset in the chunk's staging memory; -1 for a large value that is copied straight from or to the host's memory.
  int64_t staged = 0;

  bool is_direct() const { return staged < 0; }
  int64_t bytes() const { return bytes_of(type, volume(dims)); }
};

struct installed_chunk {
  std::vector<installed_launch> launches;
  std::vector<installed_transfer> uploads, downloads;
  int64_t upload_bytes = 0, download_bytes = 0; // staging memory
  /// First and last of this device's chunks in the segment: no other chunk of the execution touches the arena before, or after.
  bool first = false, last = false;
};

/// See the top of this file.
struct installed_plan {
  bound_plan_ptr bound;
  device_index self = 0;
  std::map<chunk_id, installed_chunk> chunks;
  std::vector<device_weights::handle> weights;
  allocation constants; // parameter blocks, then host-known values
  int64_t arena_bytes = 0, scratch_bytes = 0;
};

/// Values of at least this size are copied directly where the device can: below, importing costs more than a memcpy.
inline constexpr int64_t direct_copy_bytes = 64 * 1024;

/// Bytes of a parameter block; blocks are this far apart, a multiple of every device's uniform alignment.
inline constexpr int64_t param_block_bytes = 512;

/// What installing needs of a device.
struct install_tools {
  device_context& context;
  const gpu_features& features;
  memory_pool& memory;
  uploader& uploads;
  device_weights& weights;
  pipelines& kernels;
  uint32_t alternative = 0;   // see vulkan_device_options
  bool direct_copies = false; // whether large values are copied straight from and to the host's memory
};

/// Chooses kernels for all chunks of device `self` in `bound`'s segment, compiles them, and uploads weights and parameters.
/// Throws `errc::unsupported` where a node has no kernel for its concrete dims, and what memory and drivers throw.
std::unique_ptr<installed_plan> install_plan(bound_plan_ptr bound, device_index self, const install_tools& tools);

} // namespace troupe::vulkan
