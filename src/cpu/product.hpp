// What MatMul, Gemm and troupe.MatMul have in common: Y = act(alpha · op(A) · op(B) + bias + residual).
#pragma once

#include "cpu/kernel.hpp"
#include "ops/activation.hpp"

namespace troupe {

/// A matrix product with its epilogue, on concrete shapes.
struct product_call {
  bool trans_a = false, trans_b = false;
  float alpha = 1;
  activation act;
  shape batch;            // of Y
  shape batch_a, batch_b; // of the operands, aligned with `batch`: each dim equal or 1
  int64_t m = 0, n = 0, k = 0;
  /// Inputs that are a bias [n] and a residual of Y's dims; SIZE_MAX if there is none.
  size_t bias = SIZE_MAX, residual = SIZE_MAX;

  /// Returns whether B is one matrix.
  bool single_b() const { return volume(batch_b) == 1; }
};

/// Reads a call of any of the three; nullopt if it is not of floats, not plain, empty, or has a form that only the
/// reference takes (vectors, other biases). If B is one matrix and A is not transposed, all rows of A are one matrix.
std::optional<product_call> parse_product(const kernel_request& request);

} // namespace troupe
