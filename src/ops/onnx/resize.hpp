// What the kernels of Resize and Upsample share.
#pragma once

#include "ops/onnx/resample.hpp"
#include "ops/op.hpp"

namespace troupe {

/// Returns the options of a call of `op`: "Resize", or "Upsample" whose defaults differ.
resample_options resize_options(const attributes& attrs, std::string_view op);

/// Returns sizes, scales and region of every axis of a call; reads only inputs beside the first. Throws
/// `errc::invalid_model` if they do not fit the input.
std::vector<resample_axis> resize_axes(const kernel_context& c, const resample_options& options);

} // namespace troupe
