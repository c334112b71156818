// Parameters of convolutions as products (conv_operand.glsl).
#include "product.h"

PARAMETERS(conv) {
  product_parameters product;
  uint channels, taps, in_image, in_channel; // channels of a group; strides
  uint in_pixel, out_image, out_pixel, pixels; // pixels of an output image
  uvec2 channel_divisor, tap_divisor; // for `divide`
  uvec2 kernel_w_divisor, kernel_h_divisor;
  uvec2 pixel_divisor, out_w_divisor;
  uvec4 in_size;  // depth, height, width
  uvec4 out_size; // depth, height, width; the divisor of the height in w is not needed
  uvec4 kernel;
  ivec4 stride;
  ivec4 dilation;
  ivec4 pad;
};
