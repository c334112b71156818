// Shared by tests of products and convolutions of bytes on GPUs.
#pragma once

#include "launch/byte_product.hpp"
#include "support/kernel_case.hpp"

namespace troupe::test {

/// Random bytes, over the whole range of their type.
inline tensor bytes(dtype type, shape dims, uint64_t seed) {
  return type == dtype::uint8 ? random_integers(type, std::move(dims), seed, 0, 256)
                              : random_integers(type, std::move(dims), seed, -128, 128);
}

/// Checks a case as it is and, if operand B is constant, with constant scales and zero points too, which kernels have
/// in their block.
inline void check_byte_kernels(kernel_case c) {
  check_gpu_kernels(c);
  if ((c.constants & 1u << byte_inputs::b) == 0)
    return;
  for (const size_t i : byte_inputs::singles)
    c.constants |= 1u << i;
  check_gpu_kernels(c);
}

} // namespace troupe::test
