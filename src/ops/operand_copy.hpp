// Operators that only move elements, as strided copies between operands: the same description serves the reference
// kernel and the GPU, so that only the operator's own file knows its layout.
#pragma once

#include "ops/op.hpp"
#include "ops/strided_copy.hpp"

namespace troupe {

/// One copy of elements of an input to an output; offsets and steps are in elements of their row-major order.
struct operand_copy {
  size_t input = 0, output = 0;
  int64_t from = 0, to = 0;    // of the first element
  std::vector<copy_axis> axes; // outermost first
};

/// Runs the copies one after the other.
void run_copies(kernel_context& c, const std::vector<operand_copy>& copies);

// The copies of one operator each. They look at dims and at inputs whose elements the host knows
// (`op_def::host_inputs`), at no other data; throw `errc::invalid_input` if the operands do not fit together.
std::vector<operand_copy> append_copies(kernel_context& c);
std::vector<operand_copy> depth_to_space_copies(kernel_context& c);
std::vector<operand_copy> expand_copies(kernel_context& c);
std::vector<operand_copy> slice_copies(kernel_context& c);
std::vector<operand_copy> space_to_depth_copies(kernel_context& c);
std::vector<operand_copy> split_copies(kernel_context& c);
std::vector<operand_copy> tile_copies(kernel_context& c);
std::vector<operand_copy> transpose_copies(kernel_context& c);

} // namespace troupe
