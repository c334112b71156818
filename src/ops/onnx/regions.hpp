// What operators on regions of images share (roi_align.cpp, crop_and_resize.cpp): x [N, C, H, W], rois [R, 4], and the
// image of each region, [R].
#pragma once

#include "ops/operand.hpp"

namespace troupe {

/// Throws `errc::invalid_model` unless inputs 0, 1 and 2 have such dims.
inline void require_regions(const infer_context& c) {
  const symbolic_shape &x = c.dims(0), &rois = c.dims(1), &images = c.dims(2);
  if (x.size() != 4 || rois.size() != 2 || images.size() != 1)
    fail(errc::invalid_model, "operands of shapes {}, {} and {}; [N, C, H, W], [R, 4] and [R] are needed", to_string(x),
         to_string(rois), to_string(images));
  require_same(rois[1], 4, "coordinates of a region");
  require_same(rois[0], images[0], "regions and their images");
}

} // namespace troupe
