// What planning needs to know about a device: plain data, copied freely, fabricated in tests.
#pragma once

#include "cost/device_profile.hpp"
#include "launch/launch.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

struct profile_key;

enum class device_kind : uint8_t {
  cpu,
  vulkan,
  null,    // runs nothing: for measuring the engine itself, and for scheduling tests
  slow,    // the CPU at a part of its speed: for experiments with unequal devices
  control, // no device: one control-flow node of a plan, whose bodies the coordinator executes
};

/// Returns "cpu", "vulkan", "null", "slow" or "control".
std::string_view to_string(device_kind kind);

/// How tensors get to a device and back.
enum class transfer_path : uint8_t {
  shared,   // kernels work in the host's memory: nothing is copied
  mapped,   // the host writes and reads device memory directly
  imported, // large tensors are copied by the device straight from and to the host's memory, small ones are staged
  staged,   // through a buffer between
};

/// Returns the enumerator's name.
std::string_view to_string(transfer_path path);

/// A device as plans see it.
struct device_info {
  /// Unique among the engine's living devices: "cpu", "vulkan:0", "null"; further instances of one physical device are
  /// "cpu#1", "cpu#2" …; those of other hosts have the host's name before: "far/cpu".
  std::string name;
  /// Tells a device from lost ones of the same name: another number for each, if a value of one must not be looked for
  /// on another.
  uint64_t incarnation = 0;
  /// The host that it belongs to; empty: this process.
  std::string host;
  device_kind kind = device_kind::cpu;
  /// What a person calls it, e.g. the CPU's or GPU's model name.
  std::string description;
  /// Bytes that plans may use on it.
  int64_t memory_bytes = 0;
  /// Bytes that it has, used or not; 0 where it does not say. For people only.
  int64_t total_bytes = 0;
  /// Threads or compute units, for the cost model.
  int32_t units = 1;
  /// Whether kernels read and write the ordinary memory of the machine they run on, this process's or that of another
  /// host: uploads and downloads then share bytes there instead of copying.
  bool host_memory = true;
  /// Whether convolutions want channels-last operands (see `layout`).
  bool prefers_channels_last = false;
  /// What computes for it, by a name within its host: devices of one processor share its speed. Empty: it shares with
  /// none.
  std::string processor;
  /// Whether it is there only for nodes that no other device can run.
  bool fallback = false;
  /// Set for GPUs: only nodes with launches for these features run there.
  std::optional<gpu_features> gpu;
  /// How fast it is.
  device_profile profile;
  /// The network between this process and its host, each way; local devices have none: nothing is moved over it. Its
  /// round trip is part of `device_profile::chunk_s`.
  link_speed network_in, network_out;
  transfer_path transfers = transfer_path::shared;
  /// Whether it copies large values from and to the host while it computes: a chunk's uploads may then begin with the
  /// chunk before it, its downloads end with the chunk after it (`find_lifetimes`).
  bool copies_beside_work = false;
  /// GPUs of one process with the same number are peers: each can wait for the other's work without the host
  /// (`are_peers`). 0: it has none.
  uint32_t peer_set = 0;

  bool operator==(const device_info&) const = default;
};

/// Returns for each device the first one that shares its processor: mostly itself.
std::vector<size_t> first_of_processors(std::span<const device_info> devices);

/// Returns whether it is on another host than this process.
inline bool is_remote(const device_info& device) {
  return !device.host.empty();
}

/// Returns whether its kernels read and write this process's memory.
inline bool in_process_memory(const device_info& device) {
  return device.host_memory && !is_remote(device);
}

/// Returns whether work on one device can wait for work on the other although the host has not heard of its end.
inline bool are_peers(const device_info& a, const device_info& b) {
  return a.peer_set != 0 && a.peer_set == b.peer_set && a.host == b.host;
}

/// Returns the seconds that a value takes over the network, from where it is made to where it is read; null: to or from
/// the caller. Devices of one host are not apart; between two other hosts the slower one's link counts.
double network_seconds(double bytes, const device_info* from, const device_info* to);

/// Returns the seconds that it takes from one device to another: out of the memory of one, over the network, into that
/// of the other.
double move_seconds(double bytes, const device_info& from, const device_info& to);

/// The least bytes that a chunk's copies move to go beside work: below, waiting from queue to queue (some 10 µs)
/// costs more than the overlap saves.
inline constexpr int64_t copies_beside_bytes = int64_t{1} << 20;

/// Returns the key of a device's measured profile.
profile_key key_of(const device_info& device);

} // namespace troupe
