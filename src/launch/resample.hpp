// GPU launches of a Resize by one launch an axis (shaders/resample.comp): for what shaders/resize.comp cannot do at
// once.
#pragma once

#include "launch/launch.hpp"
#include "ops/onnx/resample.hpp"

namespace troupe {

/// Returns the launches of linear and cubic modes with antialias, exclude_outside or tf_crop_and_resize on plain
/// operands; empty for others.
launch_lists resample_launches(const gpu_call& call, const resample_options& options);

} // namespace troupe
