// Values: tensors, over the client's memory or our own, and what is made of them.
#pragma once

#include "compat/onnxruntime/memory.hpp"
#include "compat/onnxruntime/type_info.hpp"
#include "troupe/tensor.hpp"

#include <vector>

/// A value. What it is decides which members count: `ONNX_TYPE_TENSOR` and `ONNX_TYPE_SEQUENCE` have `held`, a map has
/// `parts`: its keys and its values, two tensors of one dim. A sequence of maps has `key`, and the parts of all its
/// maps, one after the other. `ONNX_TYPE_OPTIONAL` is an optional without a value; one that has a value is that value.
struct OrtValue {
  ONNXType kind = ONNX_TYPE_TENSOR;
  troupe::tensor held;
  std::vector<troupe::tensor> parts = {};
  troupe::dtype missing = troupe::dtype::undefined; // what an empty optional would hold
  troupe::dtype key = troupe::dtype::undefined;     // of the maps of a sequence; undefined in one of tensors
};

namespace troupe::ort {

/// Returns the tensor of a value; throws ORT_INVALID_ARGUMENT, naming `what`, where it is null or no tensor.
tensor& tensor_of(OrtValue* value, const char* what = "the value");
const tensor& tensor_of(const OrtValue* value, const char* what = "the value");

/// Returns a tensor's strings; throws ORT_INVALID_ARGUMENT where its elements are none.
std::span<std::string> strings_of(OrtValue* value);
std::span<const std::string> strings_of(const OrtValue* value);

/// Returns a tensor with bytes of its own, or an equal sequence of such tensors.
tensor copy_of(const tensor& source);

/// Returns the value that a tensor of troupe's is to a client: an optional is what it holds.
OrtValue value_of(const tensor& made);

/// Returns what an input of type `wanted` takes: the value's tensor, in an optional where that is wanted. A null value
/// is an empty optional. Throws ORT_INVALID_ARGUMENT for a map, ORT_NOT_IMPLEMENTED for an opaque value.
tensor input_of(const OrtValue* value, dtype wanted, const char* name);

} // namespace troupe::ort
