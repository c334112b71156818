// Devices as the public interface shows them.
#pragma once

#include "plan/device_info.hpp"
#include "troupe/device.hpp"

namespace troupe {

/// Returns what users see of a device.
inline device_summary summary_of(const device_info& d) {
  return {.name = d.name,
          .kind = std::string(to_string(d.kind)),
          .description = d.description,
          .memory_bytes = d.memory_bytes,
          .total_bytes = d.total_bytes,
          .fallback = d.fallback};
}

} // namespace troupe
