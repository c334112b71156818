// A convolution of channels-last bytes on concrete sizes, for the kernels that walk its windows.
#pragma once

#include "cpu/int8_finish.hpp"
#include "ops/window.hpp"

#include <optional>

namespace troupe::int8 {

/// Where an output pixel is.
struct pixel_place {
  int64_t image;
  std::array<int64_t, 3> o;
};

struct window {
  int64_t batch, channels, filters, groups;
  window_axes axes;

  int64_t in_volume() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t out_volume() const { return axes[0].out * axes[1].out * axes[2].out; }
  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  /// Returns the number of products in a sum.
  int64_t depth() const { return taps() * channels / groups; }
  /// Returns the number of output pixels of all images.
  int64_t pixels() const { return batch * out_volume(); }
  pixel_place place_of(int64_t pixel) const {
    const int64_t line = pixel / axes[2].out, plane = line / axes[1].out;
    return {plane / axes[0].out, {plane % axes[0].out, line % axes[1].out, pixel % axes[2].out}};
  }
  /// Returns whether each output pixel is made of the input pixel at its place.
  bool is_pointwise() const {
    for (const window_axis& a : axes)
      if (a.kernel != 1 || a.stride != 1 || a.pad_begin != 0 || a.in != a.out)
        return false;
    return true;
  }
};

/// Returns the call's window; nullopt unless X and Y are channels-last and not empty and the weights are a constant.
std::optional<window> window_of(const kernel_request& r, const operand_positions& at);

} // namespace troupe::int8
