// What a call of Pad does to each axis, for its reference kernel and its GPU kernel. Formulas: pad.cpp.
#pragma once

#include "ops/op.hpp"

namespace troupe {

enum class pad_mode : uint32_t { constant, reflect, edge, wrap };

struct padding {
  pad_mode mode;
  shape before;  // elements put in front of each axis; negative where it is cropped
  shape in;      // elements of each axis that may be seen
  shape skipped; // in front of those: `wrap` repeats what cropping leaves, as ONNX Runtime does
};

/// Returns the padding of a call; throws `errc::invalid_input` if it does not lead from the input's dims to the
/// output's.
padding padding_of(const kernel_context& c);

/// Returns the fill value in the input's type: input 2, or attribute `value` until opset 10, or zero.
tensor pad_fill(const kernel_context& c);

} // namespace troupe
