// What tells one compute pipeline from another.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::vulkan {

/// What makes a pipeline.
struct pipeline_key {
  std::string shader; // "matmul.f32"
  std::vector<uint32_t> constants;
  uint32_t buffers = 0; // storage buffers, after the parameter block
  /// Words of the parameter block, if they are constants of the code (block_constants.hpp).
  std::vector<uint32_t> block;

  auto operator<=>(const pipeline_key&) const = default;
};

} // namespace troupe::vulkan
