#include "base/hash.hpp"

#include <fmt/format.h>

#define XXH_STATIC_LINKING_ONLY // for the definition of XXH3_state_t
#include <xxhash.h>

namespace troupe {

struct hasher::state {
  XXH3_state_t xxh;
};

hasher::hasher() : state_(std::make_unique<state>()) {
  XXH3_128bits_reset(&state_->xxh);
}

hasher::~hasher() = default;

void hasher::add_bytes(const void* data, size_t size) {
  XXH3_128bits_update(&state_->xxh, data, size);
}

void hasher::add(std::string_view text) {
  add(text.size());
  add_bytes(text.data(), text.size());
}

std::string to_hex(const hash128& hash) {
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

hash128 hasher::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return {hash.high64, hash.low64};
}

} // namespace troupe
