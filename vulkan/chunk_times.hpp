// From a GPU's timestamps to times of the host's steady clock.
#pragma once

#include "device/device.hpp"
#include "vulkan/direct_copies.hpp"

namespace troupe::vulkan {

/// Converts the ticks of one GPU. Thread-safe.
class gpu_clock {
public:
  explicit gpu_clock(const device_context& context);

  /// Returns the nanoseconds between two ticks.
  int64_t duration(uint64_t from, uint64_t to) const;

  /// A tick and the host's time at it.
  struct anchor {
    uint64_t tick = 0;
    int64_t ns = 0;
  };
  /// Returns a moment that both clocks know: from the driver if it has calibrated timestamps, else `last_tick`, taken
  /// to be now.
  anchor now(uint64_t last_tick) const;
  int64_t to_host(const anchor& a, uint64_t tick) const;

private:
  VkDevice device_;
  double period_;
  uint64_t mask_;
  PFN_vkGetCalibratedTimestampsEXT calibrated_ = nullptr;
};

/// Reads the timestamps of a chunk of `bound` that is complete: its time, and, where it was recorded timed, the times
/// of its uploads, nodes and downloads. A node's launches follow each other; a launch ends where its timestamp is, and
/// begins at the one before.
void read_times(const device_context& context, const gpu_clock& clock, const bound_plan& bound,
                const installed_chunk& c, const recorded_chunk& r, const run_values& values, chunk_result& result);

} // namespace troupe::vulkan
