// What kernels of convolutions by constant weights ask of a call.
#pragma once

#include "cpu/kernel.hpp"
#include "ops/window.hpp"

#include <algorithm>
#include <optional>

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

/// Returns the spatial axes of Conv `r`; nullopt if the output's sizes are others, as of a window that rounds up.
inline std::optional<window_axes> axes_of_conv(const kernel_request& r) {
  const shape &x = r.inputs[0].dims, &w = r.inputs[1].dims, &y = r.outputs[0].dims;
  const window_spec spec = parse_window(r.call.attrs, shape(w.begin() + 2, w.end()));
  const window_axes axes = bind_window(spec, std::span(x).subspan(2));
  const bool fits = std::equal(y.begin() + 2, y.end(), axes.end() - static_cast<std::ptrdiff_t>(spec.rank()),
                               axes.end(), [](int64_t size, const window_axis& a) { return a.out == size; });
  return fits ? std::optional(axes) : std::nullopt;
}

} // namespace troupe
