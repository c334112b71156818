// Decisions about GPUs, as pure functions of what their drivers report: which are usable and in which order, which
// queue, memory types and extensions to use, and what kernels may rely on.
#pragma once

#include "launch/launch.hpp"
#include "vulkan/snapshot.hpp"

#include <optional>

namespace troupe::vulkan {

/// Returns why a GPU cannot be used, in words for a person; empty if it can.
std::string why_unusable(const gpu_snapshot& s);

/// Whether "all" means it too: software implementations are used only by name, because the CPU device is faster.
bool is_hardware(const gpu_snapshot& s);

/// Returns the order in which GPUs are numbered "vulkan:0", "vulkan:1" …: discrete, integrated, virtual, software;
/// those that cannot be used last; else as the loader lists them.
std::vector<size_t> order_of(std::span<const gpu_snapshot> snapshots);

/// Returns the queue family for compute: one that has compute and not graphics where it is there, else any with
/// compute.
uint32_t compute_family(const gpu_snapshot& s);

/// Returns the queue family for copies beside the work: one that does nothing but copy, whose engines run while all
/// others compute. nullopt if there is none (a second queue for work would share its units: nothing is gained, seen on
/// an H200), or if timestamps differ from those of work or cannot be reset from the host, since such queues cannot do
/// it themselves.
std::optional<uint32_t> copy_family(const gpu_snapshot& s);

/// What memory is for.
enum class memory_use : uint8_t {
  device,     // arenas and weights: local to the device
  upload,     // written by the host once, read by the device
  download,   // written by the device, read by the host: cached
  parameters, // written by the host for each binding, read by kernels at once: local to the device if that is mapped
  imported,   // the host's own (host_imports.hpp), neither flushed nor invalidated: coherent
};

/// Returns the memory type for a use, nullopt if the device has none. `allowed` has bit i set if type i may be used.
std::optional<uint32_t> find_memory_type(const gpu_snapshot& s, memory_use use, uint32_t allowed = UINT32_MAX);
/// The same; throws `errc::device_failed` if the device has none.
uint32_t memory_type_for(const gpu_snapshot& s, memory_use use, uint32_t allowed = UINT32_MAX);

/// Whether the device's own memory is the host's, all of it mapped: then nothing is staged.
bool is_unified(const gpu_snapshot& s);
/// Whether the host can write all of the memory that is the GPU's own: what is staged there has arrived.
bool maps_own_memory(const gpu_snapshot& s);

/// Returns the bytes of the device memory, used or not.
int64_t total_bytes(const gpu_snapshot& s);

/// Returns the bytes that plans may use: the driver's budget of the device memory if it says one, else 90 % of its
/// heap.
int64_t usable_bytes(const gpu_snapshot& s);

/// Returns the extensions to enable.
std::vector<const char*> wanted_extensions(const gpu_snapshot& s);

/// Returns what kernels may rely on.
gpu_features features_of(const gpu_snapshot& s);

} // namespace troupe::vulkan
