// Sliding windows over the spatial axes of [N, C, spatial…] tensors: what convolution and pooling have in common.
//
// A window_spec is parsed once from the attributes and works on symbolic sizes; `window_axes` gives it concrete sizes.
// All numbers are checked when they are parsed and are small enough (below 2^31) that products of two do not overflow.
#pragma once

#include "ops/op.hpp"

namespace troupe {

enum class auto_pad : uint8_t { notset, valid, same_upper, same_lower };

/// Kernel, strides, dilations and padding, one element a spatial axis.
struct window_spec {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> pads; // begins, then ends; used if `mode` is notset
  auto_pad mode = auto_pad::notset;
  bool ceil = false; // round output sizes up

  size_t rank() const { return kernel.size(); }
  /// Returns the extent of the dilated kernel along `axis`.
  int64_t extent(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

/// Returns attribute `auto_pad`; throws `errc::invalid_model` if it is not one of the four.
auto_pad parse_auto_pad(const attributes& attrs);

/// Reads strides, dilations, pads, auto_pad and ceil_mode; `kernel` has one element a spatial axis. Throws
/// `errc::invalid_model` on sizes below 1, negative pads and lists of the wrong length, `errc::unsupported` on more
/// than three spatial axes.
window_spec parse_window(const attributes& attrs, std::vector<int64_t> kernel);

/// Reads the window of a convolution of `x` by weights `w`, whose shape must be constant and fit x's rank.
window_spec parse_filter(const attributes& attrs, std::span<const dim> x, std::span<const dim> w);

/// Returns the output size along `axis` for an input size; throws `errc::invalid_model` if the kernel is larger than
/// the padded input (of a symbolic size: when the kernel runs).
dim window_output(const window_spec& spec, size_t axis, const dim& in);

/// One spatial axis with concrete sizes: output o covers inputs o·stride − pad_begin + t·dilation for taps 0 ≤ t <
/// kernel.
struct window_axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;

  /// Returns the input position of tap 0 of output `o`.
  int64_t start(int64_t o) const { return o * stride - pad_begin; }
  /// Returns the first tap of output `o` that is inside the input.
  int64_t first_tap(int64_t o) const;
  /// Returns one past the last tap of output `o` that is inside the input; not below `first_tap`.
  int64_t last_tap(int64_t o) const;
};

/// Three spatial axes; missing ones are in front, of size 1.
using window_axes = std::array<window_axis, 3>;

/// Returns two operations for each weight of one filter of `weights` at each of `positions`: elements of the output, or
/// of the input if the convolution is transposed.
double conv_flops(const shape& weights, const shape& positions);

/// Returns the axes of `spec` for concrete spatial input sizes.
window_axes bind_window(const window_spec& spec, std::span<const int64_t> spatial);

} // namespace troupe
