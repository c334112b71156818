// Values that stay if they were computed (`resident` of troupe/device.hpp): those of devices that compute in the host's
// memory. Devices with memory of their own derive their own kinds.
#pragma once

#include "plan/device_info.hpp"
#include "troupe/device.hpp"

namespace troupe {

/// Returns whether a value is in the memory of a device, and not of another one of its name that was lost.
inline bool is_on(const resident& value, const device_info& device) {
  return value.device() == device.name && value.incarnation() == device.incarnation;
}

/// Returns a handle to a tensor in the host's memory, as made by `device`. Nothing is copied.
device_tensor make_host_resident(tensor host, std::string device);

/// Returns a handle to a copy of a tensor, in the host's memory. Throws `errc::out_of_memory`.
device_tensor copy_to_host_resident(const tensor& host, std::string device);

} // namespace troupe
