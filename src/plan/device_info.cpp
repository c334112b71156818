#include "plan/device_info.hpp"

namespace troupe {

std::string_view to_string(device_kind kind) {
  switch (kind) {
    case device_kind::cpu: return "cpu";
    case device_kind::vulkan: return "vulkan";
    case device_kind::null: return "null";
  }
  return "unknown";
}

} // namespace troupe
