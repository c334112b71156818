#include "plan/device_info.hpp"

namespace troupe {

std::string_view to_string(device_kind kind) {
  switch (kind) {
    case device_kind::cpu: return "cpu";
    case device_kind::vulkan: return "vulkan";
    case device_kind::null: return "null";
    case device_kind::slow: return "slow";
    case device_kind::control: return "control";
  }
  return "unknown";
}

std::string_view to_string(transfer_path path) {
  switch (path) {
    case transfer_path::shared: return "shared";
    case transfer_path::mapped: return "mapped";
    case transfer_path::imported: return "imported";
    case transfer_path::staged: return "staged";
  }
  return "unknown";
}

profile_key key_of(const device_info& device) {
  return {std::string(to_string(device.kind)), device.description, device.units};
}

} // namespace troupe
