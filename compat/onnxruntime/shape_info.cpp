// Type and dims of a tensor: what clients set and ask.
#include "compat/onnxruntime/elements.hpp"
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/status.hpp"
#include "compat/onnxruntime/type_info.hpp"

#include <algorithm>

namespace troupe::ort {

OrtStatus* CreateTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded([&] { given(out, "the place for the type") = make_handle<OrtTensorTypeAndShapeInfo>(); });
}

OrtStatus* SetTensorElementType(OrtTensorTypeAndShapeInfo* info, ONNXTensorElementDataType type) noexcept {
  return guarded([&] { given(info, "the type").type = type; });
}

OrtStatus* SetDimensions(OrtTensorTypeAndShapeInfo* info, const int64_t* dims, size_t count) noexcept {
  return guarded([&] {
    OrtTensorTypeAndShapeInfo& i = given(info, "the type");
    if (count > 0)
      given(dims, "the dims");
    i.dims.assign(dims, dims + count);
    i.symbols.assign(count, {});
    i.has_shape = true;
  });
}

OrtStatus* SetSymbolicDimensions(OrtTensorTypeAndShapeInfo* info, const char** names, size_t count) noexcept {
  return guarded([&] {
    OrtTensorTypeAndShapeInfo& i = given(info, "the type");
    if (count != i.dims.size())
      reject(std::to_string(count) + " names for " + std::to_string(i.dims.size()) + " dims");
    for (size_t d = 0; d < count; ++d) {
      const char* name = (&given(names, "the names"))[d];
      i.symbols[d] = name ? name : "";
    }
  });
}

OrtStatus* GetTensorElementType(const OrtTensorTypeAndShapeInfo* info, ONNXTensorElementDataType* out) noexcept {
  return guarded([&] { given(out, "the place for the type") = given(info, "the type").type; });
}

OrtStatus* GetDimensionsCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) noexcept {
  return guarded([&] { given(out, "the place for the count") = given(info, "the type").dims.size(); });
}

OrtStatus* GetDimensions(const OrtTensorTypeAndShapeInfo* info, int64_t* dims, size_t count) noexcept {
  return guarded([&] {
    const auto& own = given(info, "the type").dims;
    if (count > 0)
      std::copy_n(own.begin(), std::min(count, own.size()), &given(dims, "the place for the dims"));
  });
}

OrtStatus* GetSymbolicDimensions(const OrtTensorTypeAndShapeInfo* info, const char** names, size_t count) noexcept {
  return guarded([&] {
    const auto& own = given(info, "the type").symbols;
    for (size_t d = 0; d < std::min(count, own.size()); ++d)
      (&given(names, "the place for the names"))[d] = own[d].c_str();
  });
}

OrtStatus* GetTensorShapeElementCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) noexcept {
  return guarded([&] {
    const auto& dims = given(info, "the type").dims;
    if (std::ranges::any_of(dims, [](int64_t d) { return d < 0; }))
      reject("the shape has dims that are not known: it has no number of elements");
    given(out, "the place for the count") = static_cast<size_t>(volume(dims));
  });
}

bool TensorTypeAndShape_HasShape(const OrtTensorTypeAndShapeInfo* info) noexcept {
  return info && info->has_shape;
}

void ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo* info) noexcept {
  release_handle(info, "ReleaseTensorTypeAndShapeInfo");
}

} // namespace troupe::ort
