// Images of few channels, packed for convolution by matrices: a model's first layer.
//
// Their pixels have fewer elements than a vector, so each would be gathered by itself. Packed, a pixel has 4 channels,
// what is around the image is there as zeros, and a row of a window is a row of whole vectors: to the kernel it is one
// pixel with all the channels of the window's row. Windows overlap in memory, and begin at vectors because their step
// is even.
#pragma once

#include "launch/convolution.hpp"
#include "launch/parameters.hpp"

namespace troupe {

struct packed_image {
  conv_call call; // as the kernel sees it
  weight_ptr weights;
  shader::pad pad; // of the launch that packs
  std::string pad_shader;
  int64_t bytes = 0;
  bool half_tail = false; // the last vector of a window's row has one pixel of it and one that is not
};

/// Returns how a convolution goes by a packed image, by kernels of vectors of 8; nullopt if that does not suit. Unless
/// all ways are wanted, also where packing costs more than it saves.
std::optional<packed_image> packed_image_of(const gpu_call& call, const conv_call& c);

/// Adds the launch that packs the image, and returns the image; later launches wait for it.
launch_binding add_packed_image(launch_builder& builder, const gpu_call& call, const packed_image& image);

} // namespace troupe
