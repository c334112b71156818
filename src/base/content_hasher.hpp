// Names of content that another program or host may have made, and keys that cannot be guessed.
//
// `hasher` (hash.hpp) is fast, and an attacker finds other content with the same hash. What is shared between models of
// different origin, between sessions of a worker, or by files that several programs write is named by this one instead:
// 128 bits of SHA-256, so that no attacker finds other content for a name that is there.
#pragma once

#include "base/hash.hpp"

namespace troupe {

/// Hashes a sequence of values, as `hasher` does.
class content_hasher {
public:
  content_hasher();
  ~content_hasher();
  content_hasher(const content_hasher&) = delete;
  content_hasher& operator=(const content_hasher&) = delete;

  void add(std::string_view text);
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void add(T value) { add_raw(&value, sizeof value); }
  void add(const hash128& value) {
    add(value.high);
    add(value.low);
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(std::span<const T> values) {
    add(values.size());
    add_raw(values.data(), values.size_bytes());
  }
  /// Adds a block of bytes. A long one is hashed in pieces, by several threads, each with `salt` in front: only a
  /// holder of all bytes can compute the hash for a salt that is new.
  void add_block(std::span<const std::byte> block, const hash128& salt = {});

  hash128 digest();

private:
  void add_raw(const void* data, size_t size);

  struct state;
  std::unique_ptr<state> state_;
};

/// Returns 128 bits from the system's source of secrets. Thread-safe.
hash128 random_key();

} // namespace troupe
