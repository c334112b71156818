// How Resize and Upsample map one axis: for every output index the input indices it reads, and their weights.
//
// Coordinates follow the ONNX reference (onnx/reference/ops/op_resize.py defines the modes); a coordinate x_o of output
// index o becomes taps around ⌊x_o⌋, clamped to the axis, or excluded and renormalised (exclude_outside).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// Everything about a resampling that is the same for all axes.
struct resample_options {
  std::string mode = "nearest";               // nearest, linear, cubic
  std::string coordinates = "half_pixel";     // coordinate_transformation_mode
  std::string nearest = "round_prefer_floor"; // nearest_mode
  bool shrinks_upwards = false;               // axes that shrink take the pixel above whatever `nearest` says
  float cubic_a = -0.75f;
  bool antialias = false;
  bool exclude_outside = false;
};

/// One axis: sizes on both sides, the scale, and the region of interest (tf_crop_and_resize), normalised to [0, 1].
struct resample_axis {
  int64_t in = 0, out = 0;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;
};

/// Taps of every output index: `count` each.
struct resample_taps {
  int64_t count = 1;
  std::vector<int64_t> indices; // out × count, within [0, in)
  std::vector<double> weights;  // out × count
  std::vector<char> outside;    // by output index: the extrapolation value takes its place

  /// Returns whether output index o is just input index o, for all o.
  bool is_identity(int64_t in) const;
};

/// Returns where output index `o` is on the input's axis. Affine in `o` where `axis.out` is above 1.
double resample_coordinate(const resample_options& options, const resample_axis& axis, int64_t o);

/// Returns the taps of an axis; throws `errc::invalid_model` for unknown modes. `axis.in` must be positive.
resample_taps taps_of(const resample_options& options, const resample_axis& axis);

} // namespace troupe
