// Devices as callers see them: what is there, what it has done, and values that are on it.
#pragma once

#include "troupe/tensor.hpp"

namespace troupe {

/// A device of an engine.
struct device_summary {
  /// Unique among the engine's living devices: "cpu", "vulkan:0", "null"; further instances of one physical device are
  /// "cpu#1", "cpu#2" ….
  std::string name;
  /// "cpu", "vulkan" (a GPU), "null" (runs nothing) or "slow" (the CPU at a part of its speed).
  std::string kind;
  /// What a person calls it, e.g. the CPU's or GPU's model name.
  std::string description;
  /// Bytes that plans may use on it.
  int64_t memory_bytes = 0;
  /// Bytes that it has, those in use included; 0 where it does not say.
  int64_t total_bytes = 0;
  /// Whether it is there only for nodes that no other device can run.
  bool fallback = false;
};

/// A host whose devices an engine uses.
struct host_summary {
  std::string name;    // that its devices begin with
  std::string address; // HOST:PORT
  bool lost = false;   // for now
  std::string problem; // if it is lost: why it cannot be connected to again
  std::string version; // of troupe there
  // As measured when it was connected; speeds by `troupe profile --calibrate` if that was too short to tell them:
  double round_trip_s = 0;
  double to_bytes_per_s = 0, from_bytes_per_s = 0;
  /// Bytes of weights that are on their way there now, and how many of them have come; both 0 if none are.
  int64_t load_bytes = 0, loaded_bytes = 0;
};

/// Counters of a device.
struct device_stats {
  int64_t chunks = 0;
  int64_t busy_ns = 0;
  int64_t weight_bytes = 0; // materialised and held
  int64_t arena_bytes = 0;  // of all slots of all layouts
  int64_t installed_plans = 0;
  // Of the pools that weights and arenas come from:
  int64_t reserved_bytes = 0;    // taken from system or driver
  int64_t used_bytes = 0;        // of those, handed out
  int64_t largest_gap_bytes = 0; // of the rest, the largest piece
  int64_t recorded_chunks = 0;   // command buffers recorded for chunks since the device was opened
  int64_t resident_bytes = 0;    // of values that handles keep in the device's own memory
  /// Bytes of values copied between the host's memory and the device's own, weights aside; so far.
  int64_t uploaded_bytes = 0, downloaded_bytes = 0;
  int64_t pending_kernels = 0; // that are compiled while runs do without them (`kernel_time::later`)

  /// Returns the part of the free bytes outside the largest free piece: 0 if all are in one.
  double fragmentation() const {
    const int64_t free = reserved_bytes - used_bytes;
    return free > 0 ? 1 - static_cast<double>(largest_gap_bytes) / static_cast<double>(free) : 0;
  }
};

/// A tensor in the memory of one device, outside of all arenas: what a run left there (`run_options::keep`), or
/// `engine::put` copied there. `engine::fetch` brings it to the host.
///
/// A handle is immutable and may cross threads freely. When the last one is gone, on whatever thread, the memory is
/// free: a device whose memory belongs to one thread reclaims it there, at its next call. Devices that compute in the
/// host's memory have no kind of their own: the handle holds the host tensor itself.
///
/// Loss: a value in a device's own memory is lost with the device. The handle stays; its next use throws
/// errc::device_lost, naming device and value. A value in the host's memory survives the device that made it.
class TROUPE_API resident {
public:
  virtual ~resident() = default;
  resident(const resident&) = delete;
  resident& operator=(const resident&) = delete;

  dtype type() const { return type_; }
  const shape& dims() const { return dims_; }
  /// Returns the number of bytes.
  int64_t bytes() const { return bytes_of(type_, volume(dims_)); }
  /// Returns the name of the device where it is, e.g. "vulkan:0"; "host" where no device made it.
  const std::string& device() const { return device_; }
  /// Returns which device of that name it is, if devices come back after they were lost (`device_info::incarnation`).
  uint64_t incarnation() const { return incarnation_; }
  /// Returns the tensor where it is in the host's memory; undefined if only the device can read it.
  const tensor& host() const { return host_; }

protected:
  resident(dtype type, shape dims, std::string device, uint64_t incarnation = 0)
      : type_(type), dims_(std::move(dims)), device_(std::move(device)), incarnation_(incarnation) {}
  resident(tensor host, std::string device)
      : type_(host.type()), dims_(host.dims()), device_(std::move(device)), host_(std::move(host)) {}

private:
  dtype type_;
  shape dims_;
  std::string device_;
  uint64_t incarnation_ = 0;
  tensor host_;
};

/// A handle to a tensor that is on a device.
using device_tensor = std::shared_ptr<const resident>;
using named_device_tensors = std::map<std::string, device_tensor>;

} // namespace troupe
