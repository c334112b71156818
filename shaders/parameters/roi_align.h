// Parameters of roi_align.comp.
#include "block.h"

PARAMETERS(roi_align) {
  uint count; // of y
  uint images, channels, height, width;
  uint bins_high, bins_wide;
  uint ratio; // samples of a bin along an axis, 0: as many as it has elements
  float scale;
};

CONSTANT roi_most_samples = 512; // as in src/ops/onnx/roi_align.cpp
