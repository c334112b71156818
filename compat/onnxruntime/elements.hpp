// Element types of the two sides.
#pragma once

#include "compat/onnxruntime/api.hpp"
#include "troupe/tensor.hpp"

namespace troupe::ort {

/// Returns troupe's type; throws ORT_NOT_IMPLEMENTED for complex numbers, ORT_INVALID_ARGUMENT for what is none.
dtype dtype_from(ONNXTensorElementDataType type);

/// Returns ONNX Runtime's; undefined for a container.
ONNXTensorElementDataType element_type_of(dtype type);

} // namespace troupe::ort
