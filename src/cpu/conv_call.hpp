// What kernels of convolutions by constant weights ask of a call.
#pragma once

#include "cpu/kernel.hpp"

namespace troupe {

/// Returns whether Conv `r` is of floats, not empty, by constant weights in one group, and whether its input (unless
/// `any_input`), its output and the residual, if there is one, which has the output's dims, are channels-last.
inline bool is_channels_last_conv(const kernel_request& r, bool any_input = false) {
  const operand &x = r.inputs[0], &y = r.outputs[0];
  const auto last = [&](const operand& o) { return r.layout_of(o) == layout::channels_last; };
  return r.all_of_type(dtype::float32) && r.inputs[1].constant && (any_input || last(x)) && last(y) &&
         (!r.has_input(3) || (last(r.inputs[3]) && r.inputs[3].dims == y.dims)) &&
         r.call.attrs.integer("group", 1) == 1 && volume(x.dims) != 0 && volume(y.dims) != 0;
}

} // namespace troupe
