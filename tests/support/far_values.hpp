// Values that test devices only claim to have.
#pragma once

#include "device/device.hpp"
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

/// Fills what a chunk makes with zeros, as a null device does.
inline void fill_with_zeros(const chunk_work& work, const bound_plan& bound) {
  for (size_t i = 0; i < work.downloads.size(); ++i) {
    const value_id v = bound.source->chunks[work.chunk].downloads[i];
    work.downloads[i]->fill(zeros(bound.source->program->values[v].type, bound.dims[v]));
  }
}

} // namespace troupe::test
