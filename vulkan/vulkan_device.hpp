// A GPU as a device: chunks are recorded command buffers, submitted without waiting; a waiter thread completes them in
// order.
//
// Threads: the owner calls everything from one thread; completions run on the timeline's waiter thread, which touches
// only what a submission holds (its tensors, its staging memory, atomic counters).
#pragma once

#include "device/device.hpp"
#include "device/host_block.hpp"
#include "launch/kernel_choices.hpp"
#include "vulkan/device_context.hpp"
#include "vulkan/peers.hpp"
#include "vulkan/shader_library.hpp"
#include "vulkan/timeline.hpp"

namespace troupe::vulkan {

struct vulkan_device_options {
  /// Memory through which large inputs and outputs pass without staging; may be null.
  std::shared_ptr<host_block_pool> blocks;
  /// Fills the arena with NaN before each run: tests see unwritten reads.
  bool poison = false;
  /// Treats mapped memory as not coherent, whatever the driver says (memory.hpp): tests see forgotten flushes.
  bool force_non_coherent = false;
  /// Stages uploads and downloads even if device memory is the host's.
  bool force_staging = false;
  /// Which ways to run calls were measured to be the fastest there; null: the launch rules decide.
  std::shared_ptr<const kernel_choices> measured;
  /// Which of an operator's alternatives to run otherwise, or its last one if it has fewer.
  uint32_t alternative = 0;
  /// Which queues copies beside the work have.
  lane_queues queues = lane_queues::own;
  /// Asks for plain layouts.
  bool prefer_plain = false;
  /// Bytes of device memory that it may take, if that is less than the GPU has.
  int64_t memory_limit = INT64_MAX;
  /// From this submission on (counted from 1, uploads of weights included) the driver seems to say that the device is
  /// lost.
  uint64_t lose_at = UINT64_MAX;
  /// Whether parameters that never change are constants of kernels; nullopt: if the driver compiles for hardware, which
  /// is quicker than for a CPU.
  std::optional<bool> constant_blocks;
  /// Whether runs wait for the driver's compiler.
  kernel_time kernels = kernel_time::now;
  /// How the ends of its work are told; nullopt: as is usual there.
  std::optional<end_signal> ends;
  /// The GPUs of the process that it can exchange values with (`device_info::peer_set`), and its timeline for them; 0
  /// and null: none.
  uint32_t peer_set = 0;
  std::shared_ptr<peer_timeline> for_peers;
  /// What is compiled in a kernel's place: tests make a GPU of it that computes worse.
  shader_filter alter_shader;
};

/// Opens GPU `index` of `gpus` as a device called `name`. Throws `errc::device_failed` if it cannot be used.
std::unique_ptr<device> make_vulkan_device(std::shared_ptr<const instance> gpus, size_t index, std::string name,
                                           const vulkan_device_options& options = {});

} // namespace troupe::vulkan
