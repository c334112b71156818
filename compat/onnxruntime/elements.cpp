#include "compat/onnxruntime/elements.hpp"

#include "compat/onnxruntime/status.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::ort {
namespace {

// The types whose numbers differ; all others have those of ONNX's TensorProto on both sides.
constexpr auto renumbered = std::to_array<std::pair<ONNXTensorElementDataType, dtype>>({
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2, dtype::uint2},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2, dtype::int2},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0, dtype::float8e8m0},
});
constexpr int last_common = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1;
static_assert(static_cast<int>(dtype::float4e2m1) == last_common);

} // namespace

dtype dtype_from(ONNXTensorElementDataType type) {
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64 || type == ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128)
    throw api_error(ORT_NOT_IMPLEMENTED, "troupe has no tensors of complex numbers");
  if (type > ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED && type <= last_common)
    return static_cast<dtype>(type);
  const auto* found = std::ranges::find(renumbered, type, &std::pair<ONNXTensorElementDataType, dtype>::first);
  if (found == renumbered.end())
    reject(std::to_string(static_cast<int>(type)) + " is not an element type");
  return found->second;
}

ONNXTensorElementDataType element_type_of(dtype type) {
  if (is_container(type))
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  const auto* found = std::ranges::find(renumbered, type, &std::pair<ONNXTensorElementDataType, dtype>::second);
  return found == renumbered.end() ? static_cast<ONNXTensorElementDataType>(type) : found->first;
}

} // namespace troupe::ort
