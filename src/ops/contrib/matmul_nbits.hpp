// The shapes of com.microsoft.MatMulNBits, for its reference kernel and its launches. See matmul_nbits.cpp.
#pragma once

#include "graph/attributes.hpp"

namespace troupe {

struct nbits_shape {
  int64_t k, n, bits, block_size, blocks; // blocks of a column

  int64_t block_bytes() const { return block_size * bits / 8; }
  int64_t zero_bytes() const { return (blocks * bits + 7) / 8; }
};

/// Throws if the attributes are not the sizes of a product, or the bits not supported.
nbits_shape parse_nbits(const attributes& attrs);

} // namespace troupe
