// What the launches of convolutions of floats and of bytes have in common: sizes, steps and the kernels' parameters.
#pragma once

#include "launch/product.hpp"
#include "ops/window.hpp"

namespace troupe {

/// How an operand [N, C, spatial…] is laid out in memory: steps in elements.
struct spatial_steps {
  int64_t image, channel, pixel;
};

/// Returns an operand's steps, as its layout says.
spatial_steps steps_of(const operand& o);

/// A convolution with concrete sizes.
struct conv_call {
  int64_t images, channels, filters, groups; // channels and filters of all groups
  window_axes axes;
  spatial_steps in, out;
  int64_t out_first; // of the output in its binding
  product_epilogue epilogue;

  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  /// Whether matrix units may gain nothing: sums are short, and operands are gathered element by element, since the
  /// channel count is not a multiple of `vector`.
  bool is_short_and_gathered(int64_t vector) const {
    constexpr int64_t short_depth = 32;
    return channels / groups % vector != 0 && channels / groups * taps() <= short_depth;
  }
  int64_t inputs() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t outputs() const { return axes[0].out * axes[1].out * axes[2].out; }
  /// Where the rows of a product go, which are pixels.
  product_output product_rows() const { return {out.pixel, out.channel, out_first}; }
  /// Whether every output pixel reads the input pixel of its own position, and no other.
  bool pointwise() const;
  /// Whether both the input's and the output's channels are neighbours.
  bool channels_last() const { return in.channel == 1 && out.channel == 1; }
};

/// Returns the convolution of inputs 0 and 1, whose strides the layouts say.
conv_call parse_convolution(const gpu_call& call, product_epilogue epilogue);

/// Returns the implicit product that a convolution is: a row for each output pixel, a batch for each group; how A is
/// read is not in it.
float_product product_of(const conv_call& c);

/// Returns the parameters of a convolution as an implicit product `p`.
std::vector<uint32_t> conv_parameters(const conv_call& c, const float_product& p, const tiling& t);

/// How a kernel for one input channel a group works on a device (shaders/depthwise.comp).
struct depthwise_shape {
  bool vectors = false; // four channels an invocation
  uint32_t pixels = 1;  // neighbouring ones of a row an invocation
  int64_t blocks = 0;   // of `pixels` in a row of the output
  int64_t count = 0;    // invocations

  /// Returns the kernels' constants.
  std::vector<uint32_t> constants(const conv_call& c, uint32_t flags) const;
};

/// Returns nullopt if such a kernel does not suit the convolution. `pixels`: of an invocation, 1, 2 or 4; 0: as many as
/// the device's size suggests.
std::optional<depthwise_shape> depthwise_shape_of(const conv_call& c, const gpu_features& gpu, uint32_t pixels = 0);

/// Returns the kernels' parameters.
std::vector<uint32_t> depthwise_parameters(const conv_call& c, const depthwise_shape& s);

} // namespace troupe
