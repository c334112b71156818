// Tensors of numbers: made over memory, or with memory, and read.
#include "compat/onnxruntime/elements.hpp"
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/status.hpp"
#include "compat/onnxruntime/value.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::ort {
namespace {

shape dims_from(const int64_t* dims, size_t count) {
  if (count > 0)
    given(dims, "the shape");
  shape all(dims, dims + count);
  if (std::ranges::any_of(all, [](int64_t d) { return d < 0; }))
    reject("a tensor cannot have the shape " + to_string(all));
  try {
    volume(all);
  } catch (const error& e) { // too many elements to count
    reject(e.what());
  }
  return all;
}

/// Returns a tensor over memory that `owner` keeps; an empty owner is the client's promise to keep it. Memory of
/// strings is an array of std::string, as programs in C++ have it.
tensor tensor_over(void* data, size_t bytes, shape dims, ONNXTensorElementDataType type,
                   std::shared_ptr<const void> owner) {
  const dtype element = dtype_from(type);
  const int64_t needed = element == dtype::string ? volume(dims) * static_cast<int64_t>(sizeof(std::string))
                                                  : bytes_of(element, volume(dims));
  if (static_cast<uint64_t>(needed) > bytes)
    reject("a tensor of the shape " + to_string(dims) + " has " + std::to_string(needed) + " bytes, the memory has " +
           std::to_string(bytes));
  if (needed > 0 && !data)
    reject("the memory is null");
  return {element, std::move(dims), std::move(owner), data};
}

/// Returns an owner that gives memory back to an allocator of the client, which lives until then.
std::shared_ptr<const void> freed_by(OrtAllocator* allocator, void* data) {
  return {data, [allocator](const void* p) { allocator->Free(allocator, const_cast<void*>(p)); }};
}

void copy_into(const tensor& source, tensor& target) {
  if (source.type() != target.type() || source.bytes() != target.bytes())
    reject("CopyTensors: " + std::string(to_string(source.type())) + " " + to_string(source.dims()) +
           " does not fit into " + std::string(to_string(target.type())) + " " + to_string(target.dims()));
  if (source.type() == dtype::string)
    std::ranges::copy(source.values<std::string>(), target.mutable_data<std::string>());
  else if (source.bytes() > 0)
    std::memmove(target.mutable_data(), source.data(), static_cast<size_t>(source.bytes()));
}

/// Returns the index of the element at a location.
int64_t index_of(const tensor& t, const int64_t* location, size_t count) {
  if (count != t.dims().size())
    reject("TensorAt: a location of " + std::to_string(count) + " numbers in the shape " + to_string(t.dims()));
  int64_t index = 0;
  for (size_t d = 0; d < count; ++d) {
    const int64_t at = (&given(location, "the location"))[d];
    if (at < 0 || at >= t.dims()[d])
      reject("TensorAt: " + std::to_string(at) + " is outside of dim " + std::to_string(d) + " of the shape " +
             to_string(t.dims()));
    index = index * t.dims()[d] + at;
  }
  return index;
}

} // namespace

OrtStatus* CreateTensorAsOrtValue(OrtAllocator* allocator, const int64_t* dims, size_t count,
                                  ONNXTensorElementDataType type, OrtValue** out) noexcept {
  return guarded([&] {
    OrtValue*& made = given(out, "the place for the tensor");
    given(allocator, "the allocator");
    const dtype element = dtype_from(type);
    shape wanted = dims_from(dims, count);
    const auto bytes = static_cast<size_t>(bytes_of(element, volume(wanted)));
    if (allocator == &default_allocator() || element == dtype::string || bytes == 0) {
      made = make_handle<OrtValue>(ONNX_TYPE_TENSOR, tensor(element, std::move(wanted)));
      return;
    }
    void* data = allocate(allocator, bytes);
    made = make_handle<OrtValue>(ONNX_TYPE_TENSOR,
                                 tensor_over(data, bytes, std::move(wanted), type, freed_by(allocator, data)));
  });
}

OrtStatus* CreateTensorWithDataAsOrtValue(const OrtMemoryInfo* memory, void* data, size_t bytes, const int64_t* dims,
                                          size_t count, ONNXTensorElementDataType type, OrtValue** out) noexcept {
  return guarded([&] {
    OrtValue*& made = given(out, "the place for the tensor");
    if (!given(memory, "the memory info").is_host())
      throw api_error(ORT_NOT_IMPLEMENTED, "memory of '" + memory->name + "' is not the host's: troupe cannot read it");
    made = make_handle<OrtValue>(ONNX_TYPE_TENSOR, tensor_over(data, bytes, dims_from(dims, count), type, nullptr));
  });
}

OrtStatus* CreateTensorWithDataAndDeleterAsOrtValue(OrtAllocator* deleter, void* data, size_t bytes,
                                                    const int64_t* dims, size_t count, ONNXTensorElementDataType type,
                                                    OrtValue** out) noexcept {
  return guarded([&] {
    OrtValue*& made = given(out, "the place for the tensor");
    given(deleter, "the allocator that frees the memory");
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)
      reject("an allocator frees memory, and does not end the strings in it");
    tensor checked =
        tensor_over(data, bytes, dims_from(dims, count), type, nullptr); // throws before the memory is ours
    made =
        make_handle<OrtValue>(ONNX_TYPE_TENSOR, tensor(checked.type(), checked.dims(), freed_by(deleter, data), data));
  });
}

OrtStatus* GetTensorMutableData(OrtValue* value, void** out) noexcept {
  return guarded([&] { given(out, "the place for the data") = tensor_of(value).mutable_data(); });
}

OrtStatus* GetTensorData(const OrtValue* value, const void** out) noexcept {
  return guarded([&] { given(out, "the place for the data") = tensor_of(value).data(); });
}

OrtStatus* TensorAt(OrtValue* value, const int64_t* location, size_t count, void** out) noexcept {
  return guarded([&] {
    tensor& t = tensor_of(value);
    if (holds_objects(t.type()) || bits_of(t.type()) < 8)
      reject("TensorAt: elements of " + std::string(to_string(t.type())) + " have no address");
    given(out, "the place for the address") = t.mutable_data<char>() + bytes_of(t.type(), index_of(t, location, count));
  });
}

OrtStatus* GetTensorTypeAndShape(const OrtValue* value, OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded([&] {
    OrtTensorTypeAndShapeInfo*& made = given(out, "the place for the type");
    made = make_handle<OrtTensorTypeAndShapeInfo>(shape_info_of(tensor_of(value)));
  });
}

OrtStatus* GetTensorElementTypeAndShapeDataReference(const OrtValue* value, ONNXTensorElementDataType* type,
                                                     const int64_t** dims, size_t* count) noexcept {
  return guarded([&] {
    const tensor& t = tensor_of(value);
    given(type, "the place for the type") = element_type_of(t.type());
    given(dims, "the place for the dims") = t.dims().empty() ? nullptr : t.dims().data();
    given(count, "the place for the count") = t.dims().size();
  });
}

OrtStatus* GetTensorSizeInBytes(const OrtValue* value, size_t* out) noexcept {
  return guarded([&] {
    const tensor& t = tensor_of(value);
    if (t.type() == dtype::string)
      reject("GetTensorSizeInBytes: strings have no one size: GetStringTensorDataLength counts their characters");
    given(out, "the place for the size") = static_cast<size_t>(t.bytes());
  });
}

OrtStatus* GetTensorMemoryInfo(const OrtValue* value, const OrtMemoryInfo** out) noexcept {
  return guarded([&] {
    tensor_of(value);
    given(out, "the place for the memory info") = &host_memory();
  });
}

OrtStatus* CopyTensors(const OrtEnv* env, const OrtValue* const* sources, OrtValue* const* targets,
                       OrtSyncStream* /*stream*/, size_t count) noexcept {
  return guarded([&] {
    given(env, "the environment");
    for (size_t i = 0; i < count; ++i)
      copy_into(tensor_of((&given(sources, "the sources"))[i]), tensor_of((&given(targets, "the targets"))[i]));
  });
}

} // namespace troupe::ort
