// Clocks of lanes, in predicted and in virtual time. A lane does one piece of work after the other: a thread, one
// direction of a link, a processor. All times are in seconds.
#pragma once

#include "plan/device_info.hpp"

#include <algorithm>
#include <optional>

namespace troupe {

/// See the top of this file.
struct lane_clock {
  double free_s = 0; // from then on the lane has nothing to do

  /// Does a piece of work that is ready at `ready_s`. Returns when the work ends.
  double take(double ready_s, double work_s) { return free_s = std::max(ready_s, free_s) + work_s; }
};

/// Returns whether a driver computes for a device on the host's cores: devices of them share these as threads do,
/// without turns.
inline bool is_emulated(const device_info& device) {
  return device.kind == device_kind::vulkan && device.processor == "cpu";
}

/// What part of the shorter of two chunks it costs that a GPU works for two of the devices that share it at the same
/// time. Each has a VkDevice of its own, and a driver lets those that have work take turns of some 2 ms, whatever a
/// chunk's length; a change costs some 0.5 ms, so a quarter. Measured with requests in flight on both (H100 and H200,
/// driver 580, chunks of 1 to 11 ms): 1.14 to 1.31 of the time that one device takes for both.
inline constexpr double turns_share = 0.25;

/// The clock of the lane in which a processor's devices work in turn.
struct processor_clock : lane_clock {
  std::optional<size_t> last; // the device that submitted last …
  double last_work_s = 0;     // … and what its chunk takes

  /// Submits a chunk that is ready at `ready_s`. Returns what passes before its copies and work: its submission, what
  /// turns cost if the GPU has worked for another device and the chunk waited for that, and waking threads that slept,
  /// since the processor worked for another device or had nothing to do. Short waits do not let them fall asleep.
  double submit(size_t index, const device_info& device, double work_s, double ready_s) {
    constexpr double awake_s = 5e-5;
    const double idle_s = ready_s - free_s;
    const bool another_worked = last && *last != index;
    const bool slept = another_worked || idle_s > awake_s;
    const bool takes_turns = another_worked && idle_s < 0 && device.kind == device_kind::vulkan && !is_emulated(device);
    const double turns_s = takes_turns ? turns_share * std::min(work_s, last_work_s) : 0;
    last = index;
    last_work_s = work_s;
    return device.profile.submit_s + (slept ? device.profile.wake_s : 0) + turns_s;
  }
};

} // namespace troupe
