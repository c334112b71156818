#include "compat/onnxruntime/type_info.hpp"

#include "compat/onnxruntime/elements.hpp"
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/status.hpp"

namespace troupe::ort {
namespace {

/// Returns the name that the file gives a dim; empty where it gives none, for which troupe has one of its own.
std::string name_of(const dim& d, const std::string& value, size_t axis) {
  const std::string name = d.symbol_name();
  return name == value + "." + std::to_string(axis) ? std::string() : name;
}

OrtTensorTypeAndShapeInfo declared_shape(const value_info& declared) {
  OrtTensorTypeAndShapeInfo info{
      .type = element_type_of(declared.type), .has_shape = declared.dims.has_value(), .dims = {}, .symbols = {}};
  for (size_t axis = 0; declared.dims && axis < declared.dims->size(); ++axis) {
    const dim& d = (*declared.dims)[axis];
    info.dims.push_back(d.is_constant() ? d.constant() : -1);
    info.symbols.push_back(d.is_constant() ? std::string() : name_of(d, declared.name, axis));
  }
  return info;
}

/// The file's dims of a container's elements are not told.
OrtTypeInfo type_of_element(dtype type) {
  if (is_sequence(type))
    return sequence_type(type_of_element(element_of(type)));
  return tensor_type({.type = element_type_of(type), .has_shape = false, .dims = {}, .symbols = {}});
}

} // namespace

OrtTypeInfo tensor_type(OrtTensorTypeAndShapeInfo tensor) {
  OrtTypeInfo type;
  type.kind = ONNX_TYPE_TENSOR;
  type.tensor = std::move(tensor);
  return type;
}

OrtTypeInfo sequence_type(OrtTypeInfo element) {
  OrtTypeInfo type;
  type.kind = ONNX_TYPE_SEQUENCE;
  type.held = std::make_shared<const OrtTypeInfo>(std::move(element));
  type.list = std::make_shared<const OrtSequenceTypeInfo>(OrtSequenceTypeInfo{type.held});
  return type;
}

OrtTypeInfo optional_type(OrtTypeInfo held) {
  OrtTypeInfo type;
  type.kind = ONNX_TYPE_OPTIONAL;
  type.held = std::make_shared<const OrtTypeInfo>(std::move(held));
  type.maybe = std::make_shared<const OrtOptionalTypeInfo>(OrtOptionalTypeInfo{type.held});
  return type;
}

OrtTypeInfo map_type(ONNXTensorElementDataType key, OrtTypeInfo values) {
  OrtTypeInfo type;
  type.kind = ONNX_TYPE_MAP;
  type.key = key;
  type.held = std::make_shared<const OrtTypeInfo>(std::move(values));
  type.map = std::make_shared<const OrtMapTypeInfo>(OrtMapTypeInfo{key, type.held});
  return type;
}

OrtTypeInfo type_of(const value_info& declared) {
  if (is_optional(declared.type))
    return optional_type(type_of_element(element_of(declared.type)));
  if (is_sequence(declared.type))
    return type_of_element(declared.type);
  return tensor_type(declared_shape(declared));
}

OrtTensorTypeAndShapeInfo shape_info_of(const tensor& value) {
  return {.type = element_type_of(value.type()),
          .has_shape = true,
          .dims = value.dims(),
          .symbols = std::vector<std::string>(value.dims().size())};
}

OrtStatus* GetOnnxTypeFromTypeInfo(const OrtTypeInfo* type, ONNXType* out) noexcept {
  return guarded([&] { given(out, "the place for the type") = given(type, "the type").kind; });
}

// A type that is something else is not an error: the pointer is null then.

OrtStatus* CastTypeInfoToTensorInfo(const OrtTypeInfo* type, const OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded([&] {
    const bool fits = given(type, "the type").kind == ONNX_TYPE_TENSOR;
    given(out, "the place for the type") = fits ? &type->tensor : nullptr;
  });
}

OrtStatus* CastTypeInfoToMapTypeInfo(const OrtTypeInfo* type, const OrtMapTypeInfo** out) noexcept {
  return guarded([&] { given(out, "the place for the type") = given(type, "the type").map.get(); });
}

OrtStatus* CastTypeInfoToSequenceTypeInfo(const OrtTypeInfo* type, const OrtSequenceTypeInfo** out) noexcept {
  return guarded([&] { given(out, "the place for the type") = given(type, "the type").list.get(); });
}

OrtStatus* CastTypeInfoToOptionalTypeInfo(const OrtTypeInfo* type, const OrtOptionalTypeInfo** out) noexcept {
  return guarded([&] { given(out, "the place for the type") = given(type, "the type").maybe.get(); });
}

/// Files have denotations and troupe does not read them: none is told.
OrtStatus* GetDenotationFromTypeInfo(const OrtTypeInfo* type, const char** denotation, size_t* length) noexcept {
  return guarded([&] {
    given(type, "the type");
    given(denotation, "the place for the denotation") = "";
    given(length, "the place for the length") = 0;
  });
}

OrtStatus* GetMapKeyType(const OrtMapTypeInfo* map, ONNXTensorElementDataType* out) noexcept {
  return guarded([&] { given(out, "the place for the type") = given(map, "the map's type").key; });
}

OrtStatus* GetMapValueType(const OrtMapTypeInfo* map, OrtTypeInfo** out) noexcept {
  return guarded(
      [&] { given(out, "the place for the type") = make_handle<OrtTypeInfo>(*given(map, "the map's type").values); });
}

OrtStatus* GetSequenceElementType(const OrtSequenceTypeInfo* sequence, OrtTypeInfo** out) noexcept {
  return guarded([&] {
    given(out, "the place for the type") = make_handle<OrtTypeInfo>(*given(sequence, "the sequence's type").element);
  });
}

OrtStatus* GetOptionalContainedTypeInfo(const OrtOptionalTypeInfo* optional, OrtTypeInfo** out) noexcept {
  return guarded([&] {
    given(out, "the place for the type") = make_handle<OrtTypeInfo>(*given(optional, "the optional's type").held);
  });
}

void ReleaseTypeInfo(OrtTypeInfo* type) noexcept {
  release_handle(type, "ReleaseTypeInfo");
}

// Types of maps and sequences belong to the type that they were read from: there are none to release.

void ReleaseMapTypeInfo(OrtMapTypeInfo* /*type*/) noexcept {}

void ReleaseSequenceTypeInfo(OrtSequenceTypeInfo* /*type*/) noexcept {}

} // namespace troupe::ort
