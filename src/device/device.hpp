// The device interface: one object that runs chunks. CPU, GPU and null devices implement it; the device
// actor is its only caller and calls it from one thread at a time.
//
// Order: chunks run in the order of `submit`. `submit` never blocks on the device's work if the device is asynchronous
// (GPU), but may wait until a peer has begun what was sent to it before; a device that computes on the calling thread
// (CPU) completes inside `submit`. Either way `done` is called exactly once for each submitted chunk, in submission
// order, from any thread. A device of another host may tell of a chunk that failed before earlier ones have ended.
//
// Errors: install throws; a chunk's failure is in its `chunk_result`, never an exception from `submit`.
#pragma once

#include "device/moved_value.hpp"
#include "plan/bind/bound_plan.hpp"

#include <atomic>
#include <chrono>
#include <functional>

namespace troupe {

using execution_id = uint64_t;

/// One thing that a device did for a chunk whose `chunk_work::timed` is set. Times are nanoseconds of
/// std::chrono::steady_clock since its epoch; a device with a clock of its own converts them.
struct device_timing {
  enum class work : uint8_t { node, upload, download };
  work kind = work::node;
  int32_t id = -1;    // the node, or the value that was moved
  uint32_t queue = 0; // of the device
  int64_t begin_ns = 0, end_ns = 0;
  int64_t bytes = 0;  // that were moved; 0 for nodes
  std::string kernel; // name of the implementation; empty for moves

  double seconds() const { return static_cast<double>(end_ns - begin_ns) * 1e-9; }
};

/// Returns the time that `device_timing` counts in.
inline int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// One chunk of one execution, ready to run.
struct chunk_work {
  uint64_t bound_plan = 0; // bound_plan::id, installed before
  chunk_id chunk = 0;
  execution_id execution = 0;
  /// Arena slot: executions in flight on bound plans of one layout have different slots, counted from 0. A bound plan
  /// may see only some of them.
  uint32_t slot = 0;
  /// What the chunk reads, by upload: filled, where `moved_value::reaches` this device; or to be filled by a peer that
  /// was sent the chunk which makes it before. Then this device waits for the peer to tell of it (`is_told`), unless
  /// the run is stopped, and for the bytes (`promised_for`).
  std::vector<value_ref> uploads;
  /// What it makes, by download: for the device to fill before it calls `done`. Those of a chunk that failed are
  /// not read.
  std::vector<value_ref> downloads;
  /// Whether `chunk_result::timings` is wanted. False costs nothing.
  bool timed = false;
  /// Set when the execution is cancelled: CPU devices look at it between nodes. May be null.
  std::shared_ptr<const std::atomic<bool>> stop;
};

/// How a chunk ended; what it made is in `chunk_work::downloads`.
struct chunk_result {
  /// errc and message where it failed; `message` is empty on success. `errc::device_lost` means that the device is
  /// gone.
  errc code = errc::internal;
  std::string message;
  /// Time the device computed, in nanoseconds.
  int64_t busy_ns = 0;
  /// Where the work is `timed`: its nodes, each once, and what was copied to and from the device, in any order. A
  /// device that computes nothing leaves it empty.
  std::vector<device_timing> timings;

  bool ok() const { return message.empty(); }
};

using chunk_done = std::function<void(chunk_result)>;

/// How a fetch ended.
struct fetch_result {
  tensor value; // undefined if it failed
  errc code = errc::internal;
  std::string message; // empty on success

  bool ok() const { return message.empty(); }
};

using fetch_done = std::function<void(fetch_result)>;

class device {
public:
  virtual ~device() = default;

  virtual const device_info& info() const = 0;

  /// Prepares all chunks of `bound.segment` that plan device `self` runs: kernels, weights, arena. `self` is this
  /// device's index in the plan. Throws `errc::out_of_memory` and what kernels throw.
  virtual void install(bound_plan_ptr bound, device_index self) = 0;

  /// Forgets an installed plan. Chunks of it that are in flight finish first.
  virtual void retire(uint64_t bound_plan) = 0;

  /// Runs a chunk (see the top of this file).
  virtual void submit(chunk_work work, chunk_done done) = 0;

  /// Returns those downloads of the chunk that was submitted last, by position, which `submit` filled itself although
  /// the chunk may not be complete: what stays on the device. The others are not to be looked at before `done`.
  virtual std::vector<uint32_t> take_made_ahead() { return {}; }

  /// An execution has been stopped: its chunks that are queued or running need not be finished, but are answered. For
  /// devices that cannot see `chunk_work::stop`: those of other hosts.
  virtual void stop(execution_id) {}

  /// No more chunks will come of an execution that ended early: what is remembered of it can go.
  virtual void end(execution_id) {}

  /// Copies a value of this device to the host, after the chunks submitted before. `done` as for `submit`.
  virtual void fetch(const device_tensor& value, const fetch_done& done) { done({.value = value->host()}); }

  /// Copies a host tensor to the device, for chunks submitted later. Throws `errc::out_of_memory`, and
  /// `errc::invalid_argument` if the device cannot hold its type. The tensor's bytes are not read after the return: the
  /// caller may change them.
  virtual device_tensor put(const tensor& value) { return copy_to_host_resident(value, info().name); }

  /// Returns what is to be called, from any thread, by all who find that the device is lost, though its own thread may
  /// hang; null: nothing. It may outlive the device.
  virtual std::function<void()> if_lost() { return nullptr; }

  /// Returns whether a call or a chunk may never end, for reasons outside of this library: a GPU, its driver, another
  /// host. What computes in this process alone is alive as long as it computes, however long that is.
  virtual bool may_hang() const { return true; }

  virtual device_stats stats() const = 0;
};

/// Opens a device; throws if it cannot be opened. Called in the thread that will use the device.
using device_factory = std::function<std::unique_ptr<device>()>;

} // namespace troupe
