// Device names as people write them: "cpu", "null", "cpu*2" (two on one physical device), "all".
#pragma once

#include "plan/device_info.hpp"

#include <vector>

namespace troupe::actors {

/// One device to open.
struct device_request {
  device_kind kind = device_kind::cpu;
  /// Unique: "cpu", further instances "cpu#1", "cpu#2" ….
  std::string name;
};

/// Returns what the names ask for, in their order. Throws `errc::invalid_argument` for unknown names, for a device asked for
/// twice and for counts outside [1, 256].
std::vector<device_request> parse_device_names(const std::vector<std::string>& names);

} // namespace troupe::actors
