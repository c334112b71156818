#include "compat/onnxruntime/value.hpp"

#include "compat/onnxruntime/elements.hpp"
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/status.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace troupe::ort {
namespace {

bool holds_maps(const OrtValue& value) {
  return value.key != dtype::undefined;
}

OrtTypeInfo type_of_tensor(const tensor& t) {
  if (!is_sequence(t.type()))
    return tensor_type(shape_info_of(t));
  OrtTensorTypeAndShapeInfo element{
      .type = element_type_of(element_of(t.type())), .has_shape = false, .dims = {}, .symbols = {}};
  return sequence_type(tensor_type(std::move(element)));
}

/// Maps without a row do not say what their values are: floats, as ZipMap's.
OrtTypeInfo type_of_maps(const OrtValue& list) {
  const dtype values = list.parts.empty() ? dtype::float32 : list.parts[1].type();
  return sequence_type(map_type(element_type_of(list.key), type_of_tensor(tensor(values, {0}))));
}

OrtTypeInfo type_of_value(const OrtValue& value) {
  if (holds_maps(value))
    return type_of_maps(value);
  switch (value.kind) {
    case ONNX_TYPE_MAP: return map_type(element_type_of(value.parts[0].type()), type_of_tensor(value.parts[1]));
    case ONNX_TYPE_OPTIONAL: return optional_type(type_of_tensor(tensor(value.missing, {0})));
    default: return type_of_tensor(value.held);
  }
}

OrtValue map_of(const tensor& keys, const tensor& values) {
  return {.kind = ONNX_TYPE_MAP, .held = {}, .parts = {copy_of(keys), copy_of(values)}};
}

// A sequence or a map has memory of its own: the values that it is made of may be released.

OrtValue sequence_of_maps(const OrtValue* const* maps, size_t count) {
  OrtValue list{.kind = ONNX_TYPE_SEQUENCE, .held = {}, .key = maps[0]->parts[0].type()};
  for (size_t i = 0; i < count; ++i) {
    const OrtValue& map = given(maps[i], "a map");
    if (map.kind != ONNX_TYPE_MAP || map.parts[0].type() != list.key || map.parts[1].type() != maps[0]->parts[1].type())
      reject("CreateValue: element " + std::to_string(i) +
             " of the sequence is no map of the types that the first has");
    std::ranges::transform(map.parts, std::back_inserter(list.parts), copy_of);
  }
  return list;
}

OrtValue sequence_of_values(const OrtValue* const* values, size_t count) {
  if (count == 0)
    reject("CreateValue: a sequence needs a value, which says what type its elements have");
  if (given(given(values, "the values"), "an element of the sequence").kind == ONNX_TYPE_MAP)
    return sequence_of_maps(values, count);
  std::vector<tensor> elements;
  for (size_t i = 0; i < count; ++i)
    elements.push_back(copy_of(tensor_of((&given(values, "the values"))[i], "an element of the sequence")));
  const dtype element = elements.front().type();
  return {.kind = ONNX_TYPE_SEQUENCE, .held = tensor::sequence(element, std::move(elements))};
}

OrtValue map_of_values(const OrtValue* const* values, size_t count) {
  if (count != 2)
    reject("CreateValue: a map is made of two tensors, its keys and its values, not of " + std::to_string(count));
  const tensor &keys = tensor_of((&given(values, "the values"))[0], "the keys"), &held = tensor_of(values[1]);
  if (keys.dims().size() != 1 || keys.dims() != held.dims())
    reject("CreateValue: keys of the shape " + to_string(keys.dims()) + " and values of the shape " +
           to_string(held.dims()) + " make no map: both are lists of one length");
  if (keys.type() != dtype::int64 && keys.type() != dtype::string)
    reject("CreateValue: keys of a map are int64 or string, not " + std::string(to_string(keys.type())));
  return map_of(keys, held);
}

} // namespace

const tensor& tensor_of(const OrtValue* value, const char* what) {
  if (given(value, what).kind != ONNX_TYPE_TENSOR)
    reject(std::string(what) + " is not a tensor");
  return value->held;
}

tensor& tensor_of(OrtValue* value, const char* what) {
  return const_cast<tensor&>(tensor_of(static_cast<const OrtValue*>(value), what));
}

tensor copy_of(const tensor& source) {
  if (!source.defined())
    return source;
  tensor copy(source.type(), source.dims());
  if (source.type() == dtype::string)
    std::ranges::copy(source.values<std::string>(), copy.mutable_data<std::string>());
  else if (is_container(source.type()))
    std::ranges::transform(source.values<tensor>(), copy.mutable_data<tensor>(), copy_of);
  else if (source.bytes() > 0)
    std::memcpy(copy.mutable_data(), source.data(), static_cast<size_t>(source.bytes()));
  return copy;
}

OrtValue value_of(const tensor& made) {
  if (!is_optional(made.type()))
    return {.kind = is_sequence(made.type()) ? ONNX_TYPE_SEQUENCE : ONNX_TYPE_TENSOR, .held = made};
  if (made.size() > 0)
    return value_of(*made.data<tensor>());
  return {.kind = ONNX_TYPE_OPTIONAL, .held = {}, .parts = {}, .missing = element_of(made.type())};
}

tensor input_of(const OrtValue* value, dtype wanted, const char* name) {
  const bool empty = !value || value->kind == ONNX_TYPE_OPTIONAL;
  if (empty && !is_optional(wanted))
    reject("input '" + std::string(name) + "' has no value");
  if (empty)
    return tensor::optional(element_of(wanted), {});
  if (value->kind == ONNX_TYPE_MAP || holds_maps(*value))
    reject("input '" + std::string(name) + "' is " + (value->kind == ONNX_TYPE_MAP ? "a map" : "a sequence of maps") +
           "; the model takes " + std::string(to_string(wanted)));
  return is_optional(wanted) ? tensor::optional(element_of(wanted), value->held) : value->held;
}

OrtStatus* IsTensor(const OrtValue* value, int* out) noexcept {
  return guarded([&] { given(out, "the place for the answer") = given(value, "the value").kind == ONNX_TYPE_TENSOR; });
}

OrtStatus* IsSparseTensor(const OrtValue* value, int* out) noexcept {
  return guarded([&] {
    given(value, "the value");
    given(out, "the place for the answer") = 0;
  });
}

OrtStatus* HasValue(const OrtValue* value, int* out) noexcept {
  return guarded(
      [&] { given(out, "the place for the answer") = given(value, "the value").kind != ONNX_TYPE_OPTIONAL; });
}

OrtStatus* GetValueType(const OrtValue* value, ONNXType* out) noexcept {
  return guarded([&] { given(out, "the place for the type") = given(value, "the value").kind; });
}

OrtStatus* GetTypeInfo(const OrtValue* value, OrtTypeInfo** out) noexcept {
  return guarded([&] {
    const OrtValue& v = given(value, "the value");
    given(out, "the place for the type") = make_handle<OrtTypeInfo>(type_of_value(v));
  });
}

OrtStatus* GetValueCount(const OrtValue* value, size_t* out) noexcept {
  return guarded([&] {
    const OrtValue& v = given(value, "the value");
    if (v.kind != ONNX_TYPE_SEQUENCE && v.kind != ONNX_TYPE_MAP)
      reject("GetValueCount: the value is neither a sequence nor a map");
    size_t& count = given(out, "the place for the count");
    if (holds_maps(v))
      count = v.parts.size() / 2;
    else
      count = v.kind == ONNX_TYPE_MAP ? v.parts.size() : static_cast<size_t>(v.held.size());
  });
}

OrtStatus* GetValue(const OrtValue* value, int index, OrtAllocator* /*allocator*/, OrtValue** out) noexcept {
  return guarded([&] {
    const OrtValue& v = given(value, "the value");
    const bool list = v.kind == ONNX_TYPE_SEQUENCE;
    if (!list && v.kind != ONNX_TYPE_MAP)
      reject("GetValue: the value is neither a sequence nor a map");
    const auto tensors = list && !holds_maps(v) ? v.held.values<tensor>() : std::span<const tensor>(v.parts);
    const size_t width = holds_maps(v) ? 2 : 1, count = tensors.size() / width;
    if (index < 0 || static_cast<size_t>(index) >= count)
      throw api_error(ORT_RUNTIME_EXCEPTION,
                      "GetValue: there is no element " + std::to_string(index) + ": it has " + std::to_string(count));
    OrtValue*& made = given(out, "the place for the element");
    const auto element = tensors.subspan(static_cast<size_t>(index) * width, width);
    if (width == 2)
      made = make_handle<OrtValue>(map_of(element[0], element[1]));
    else
      made = make_handle<OrtValue>(ONNX_TYPE_TENSOR, copy_of(element[0]));
  });
}

OrtStatus* CreateValue(const OrtValue* const* values, size_t count, ONNXType kind, OrtValue** out) noexcept {
  return guarded([&] {
    OrtValue*& made = given(out, "the place for the value");
    if (kind == ONNX_TYPE_SEQUENCE)
      made = make_handle<OrtValue>(sequence_of_values(values, count));
    else if (kind == ONNX_TYPE_MAP)
      made = make_handle<OrtValue>(map_of_values(values, count));
    else
      throw api_error(ORT_NOT_IMPLEMENTED, "CreateValue: only sequences and maps are made of values");
  });
}

void ReleaseValue(OrtValue* value) noexcept {
  release_handle(value, "ReleaseValue");
}

} // namespace troupe::ort
