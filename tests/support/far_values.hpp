// Values that test devices only claim to have.
#pragma once

#include "device/resident.hpp"

#include <cstring>

namespace troupe::test {

/// A value in a made-up device's own memory.
struct far_resident final : resident {
  far_resident(dtype type, shape dims, const device_info& device)
      : resident(type, std::move(dims), device.name, device.incarnation) {}
};

inline tensor zeros(dtype type, const shape& dims) {
  tensor t(type, dims);
  std::memset(t.mutable_data(), 0, static_cast<size_t>(t.bytes()));
  return t;
}

} // namespace troupe::test
