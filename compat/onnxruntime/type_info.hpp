// Types of values and of a model's inputs and outputs, as clients read them.
#pragma once

#include "compat/onnxruntime/api.hpp"
#include "troupe/results.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Type and dims of a tensor.
struct OrtTensorTypeAndShapeInfo {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  bool has_shape = true;
  std::vector<int64_t> dims;        // -1 where a dim is not a number
  std::vector<std::string> symbols; // the dims' names, empty where they have none; as many as dims
};

struct OrtMapTypeInfo;
struct OrtSequenceTypeInfo;
struct OrtOptionalTypeInfo;

/// Any type: what it is, and what goes with it. What the last three hold is in `held`.
struct OrtTypeInfo {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  OrtTensorTypeAndShapeInfo tensor;                 // of a tensor
  ONNXTensorElementDataType key = {};               // of a map
  std::shared_ptr<const OrtTypeInfo> held;          // of a sequence, an optional, or a map: its values
  std::shared_ptr<const OrtMapTypeInfo> map;        // of a map
  std::shared_ptr<const OrtSequenceTypeInfo> list;  // of a sequence
  std::shared_ptr<const OrtOptionalTypeInfo> maybe; // of an optional
};

struct OrtMapTypeInfo {
  ONNXTensorElementDataType key;
  std::shared_ptr<const OrtTypeInfo> values;
};
struct OrtSequenceTypeInfo {
  std::shared_ptr<const OrtTypeInfo> element;
};
struct OrtOptionalTypeInfo {
  std::shared_ptr<const OrtTypeInfo> held;
};

namespace troupe::ort {

/// Returns the type of a tensor with these dims.
OrtTypeInfo tensor_type(OrtTensorTypeAndShapeInfo tensor);
OrtTypeInfo sequence_type(OrtTypeInfo element);
OrtTypeInfo optional_type(OrtTypeInfo held);
OrtTypeInfo map_type(ONNXTensorElementDataType key, OrtTypeInfo values);

/// Returns the type of what a model declares.
OrtTypeInfo type_of(const value_info& declared);

/// Returns the type and dims of a tensor that is there.
OrtTensorTypeAndShapeInfo shape_info_of(const tensor& value);

} // namespace troupe::ort
