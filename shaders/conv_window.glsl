// The windows of convolutions as operand A of products: row m is an output pixel, depth k a tap and channel of its
// window. See gemm.glsl.
//
// A batch of the product is a group of channels. Depth order: k = tap · channels + channel if CHANNEL_LAST, so that
// vectors along the depth are neighbouring channels; else k = channel · taps + tap, as ONNX stores weights.
layout(constant_id = 10) const bool CHANNEL_LAST = true;

#include "parameters/conv.h"

uint batch_of_b() {
  return batch_index() * product.n * product.b_column;
}
uint column_of_bias(uint n) {
  return batch_index() * product.n + n;
}
uint out_at(uint m, uint n) {
  const uint column = product.out_first + column_of_bias(n) * product.out_column;
  if (!STRIDED_OUT)
    return m * product.out_row + column;
  const uint image = divide(m, pixel_divisor);
  return image * out_image + (m - image * pixels) * out_pixel + column;
}

/// A window: the element under its tap 0 of the group's channel 0 (perhaps outside), and that tap's position.
struct a_state {
  int start;
  ivec3 position;
};

a_state a_line_at(uint m) {
  if (m >= product.m)
    return a_state(0, ivec3(-0x40000000));
  const uint image = divide(m, pixel_divisor), pixel = m - image * pixels;
  const uint row = divide(pixel, out_w_divisor), w = pixel - row * out_size.z;
  const uint d = row / out_size.y, h = row - d * out_size.y;
  const ivec3 at = ivec3(d, h, w) * stride.xyz - pad.xyz;
  const int first_channel = int(batch_index() * channels * in_channel);
  const int start = int(image * in_image) + first_channel +
                    ((at.x * int(in_size.y) + at.y) * int(in_size.z) + at.z) * int(in_pixel);
  return a_state(start, at);
}

/// Depth k of a window: its tap's position along the three axes, and its channel.
uvec4 depth_at(uint k) {
  uint channel, tap;
  if (CHANNEL_LAST) {
    tap = divide(k, channel_divisor);
    channel = k - tap * channels;
  } else {
    channel = divide(k, tap_divisor);
    tap = k - channel * taps;
  }
  const uint row = divide(tap, kernel_w_divisor), d = divide(row, kernel_h_divisor);
  return uvec4(d, row - d * kernel.y, tap - row * kernel.z, channel);
}

/// The depth after `at`.
uvec4 next_depth(uvec4 at) {
  if (CHANNEL_LAST && ++at.w < channels)
    return at;
  if (++at.z == kernel.z) {
    at.z = 0;
    if (++at.y == kernel.y) {
      at.y = 0;
      ++at.x;
    }
  }
  if (CHANNEL_LAST)
    at.w = 0;
  else if (at.x == kernel.x) {
    at.x = 0;
    ++at.w;
  }
  return at;
}

/// Where a depth of a window is; −1 in the padding.
int a_address(a_state s, uvec4 at) {
  const ivec3 offset = ivec3(at.xyz) * dilation.xyz;
  const int address = s.start + int(at.w * in_channel) +
                      ((offset.x * int(in_size.y) + offset.y) * int(in_size.z) + offset.z) * int(in_pixel);
  return all(lessThan(uvec3(s.position + offset), in_size.xyz)) ? address : -1;
}
