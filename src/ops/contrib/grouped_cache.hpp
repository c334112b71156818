// What a cache of GroupQueryAttention holds: real numbers, or codes of them.
#pragma once

#include "ops/expansion.hpp"

namespace troupe {

/// How rows of keys or values, [batch, heads, sequence, size], are kept in a cache: as they are, as int8, or as codes
/// of 4 bits, of which two share a byte, the first in its low half. A code is a number divided by a scale and rounded.
class cache_codes {
public:
  /// Reads the attribute `kind` (NONE, PER_TENSOR or PER_CHANNEL) and kv_cache_bit_width; the scale is input `scale`,
  /// and the cache is input `past`.
  cache_codes(expansion& e, const char* kind, size_t scale, size_t past, int64_t heads, const dim& size);

  bool real() const { return bits_ == 0; }
  /// Returns rows as the cache holds them.
  value_id coded(value_id rows) const;
  /// Returns what a cache holds as numbers of `type`.
  value_id decoded(value_id cache, dtype type) const;

private:
  value_id packed(value_id codes) const;
  value_id unpacked(value_id bytes) const;

  expansion& e_;
  int64_t bits_ = 0; // 0: real numbers
  value_id scale_ = no_value;
};

} // namespace troupe
