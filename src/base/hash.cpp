#include "base/hash.hpp"

#include <fmt/format.h>

#include <charconv>

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

std::optional<hash128> from_hex(std::string_view digits) {
  const auto read = [&](size_t at, uint64_t& word) {
    const char *begin = digits.data() + at, *end = begin + 16;
    return std::from_chars(begin, end, word, 16).ptr == end;
  };
  hash128 hash;
  if (digits.size() != 32 || !read(0, hash.high) || !read(16, hash.low))
    return std::nullopt;
  return hash;
}

hash128 hasher::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return {hash.high64, hash.low64};
}

} // namespace troupe
