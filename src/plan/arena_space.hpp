// What a value takes in a device's arena: placement counts it, and bindings lay it out.
#pragma once

#include "base/round_up.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace troupe {

/// Every arena offset is a multiple of this: the largest minStorageBufferOffsetAlignment that Vulkan allows.
inline constexpr int64_t arena_alignment = 256;

/// Returns the bytes that a value of `bytes` bytes takes in an arena: whole steps of `arena_alignment`, at least one.
constexpr int64_t arena_space(int64_t bytes) {
  return round_up(std::max<int64_t>(bytes, 1), arena_alignment);
}

/// Devices whose figures a message about memory lists; the others it counts.
inline constexpr size_t devices_in_message = 4;

} // namespace troupe
