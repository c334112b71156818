// What tells one compute pipeline from another.
#pragma once

#include "base/hash.hpp"

#include <compare>
#include <cstdint>
#include <set>
#include <span>
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

/// Adds the first `count` constants of a key, if it has as many.
inline void add_first_constants(const pipeline_key& key, size_t count, std::set<std::vector<uint32_t>>& to) {
  if (key.constants.size() >= count)
    to.emplace(key.constants.begin(), key.constants.begin() + static_cast<std::ptrdiff_t>(count));
}

/// Returns a hash that tells keys apart from process to process.
inline hash128 hash_of(const pipeline_key& key) {
  hasher h;
  h.add(key.shader);
  h.add(std::span<const uint32_t>(key.constants));
  h.add(key.buffers);
  h.add(std::span<const uint32_t>(key.block));
  return h.digest();
}

} // namespace troupe::vulkan
