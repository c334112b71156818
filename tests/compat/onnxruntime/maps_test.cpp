// Maps, and sequences of them.
#include "compat/onnxruntime/client.hpp"

using namespace troupe::test;
using namespace troupe::test::onnx_bytes;

namespace {

/// Returns the keys' type of a map's type.
ONNXTensorElementDataType key_of(const OrtTypeInfo* type) {
  const OrtMapTypeInfo* map = nullptr;
  must(ort().CastTypeInfoToMapTypeInfo(type, &map));
  REQUIRE(map != nullptr);
  ONNXTensorElementDataType key = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  must(ort().GetMapKeyType(map, &key));
  return key;
}

/// Returns the keys' type of the type of a sequence of maps.
ONNXTensorElementDataType key_in_list(const OrtTypeInfo* type) {
  const OrtSequenceTypeInfo* list = nullptr;
  must(ort().CastTypeInfoToSequenceTypeInfo(type, &list));
  REQUIRE(list != nullptr);
  OrtTypeInfo* element = nullptr;
  must(ort().GetSequenceElementType(list, &element));
  const owned<OrtTypeInfo> keep(element, {ort().ReleaseTypeInfo});
  return key_of(element);
}

std::vector<int64_t> whole_numbers(OrtValue* value) {
  size_t bytes = 0;
  void* data = nullptr;
  must(ort().GetTensorSizeInBytes(value, &bytes));
  must(ort().GetTensorMutableData(value, &data));
  return {static_cast<int64_t*>(data), static_cast<int64_t*>(data) + bytes / sizeof(int64_t)};
}

} // namespace

TEST_CASE("onnxruntime: a map is two lists", "[onnxruntime]") {
  const auto keys = string_tensor({2});
  const char* names[] = {"one", "two"};
  must(ort().FillStringTensor(keys.get(), names, 2));
  std::vector<float> numbers{1, 2};
  const auto values = over(numbers, {2});
  const OrtValue* parts[] = {keys.get(), values.get()};
  OrtValue* map = nullptr;
  must(ort().CreateValue(parts, 2, ONNX_TYPE_MAP, &map));
  const auto keep = own(map);
  OrtTypeInfo* type = nullptr;
  must(ort().GetTypeInfo(map, &type));
  CHECK(key_of(type) == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  ort().ReleaseTypeInfo(type);
  OrtValue* part = nullptr;
  must(ort().GetValue(map, 1, allocator(), &part));
  CHECK(floats(own(part).get()) == numbers);
  CHECK(problem_of(ort().CreateValue(parts, 1, ONNX_TYPE_MAP, &part)).code == ORT_INVALID_ARGUMENT);
}

TEST_CASE("onnxruntime: a sequence has maps of one type", "[onnxruntime]") {
  std::vector<owned<OrtValue>> maps;
  for (const float first : {1.f, 5.f}) {
    std::vector<int64_t> labels{7, 9};
    std::vector<float> numbers{first, 2};
    const int64_t dims[] = {2};
    OrtValue *keys = nullptr, *map = nullptr;
    must(ort().CreateTensorWithDataAsOrtValue(cpu().get(), labels.data(), 16, dims, 1,
                                              ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &keys));
    const auto keep = own(keys), values = over(numbers, {2});
    const OrtValue* parts[] = {keys, values.get()};
    must(ort().CreateValue(parts, 2, ONNX_TYPE_MAP, &map));
    maps.push_back(own(map));
  }
  const OrtValue* elements[] = {maps[0].get(), maps[1].get()};
  OrtValue* list = nullptr;
  must(ort().CreateValue(elements, 2, ONNX_TYPE_SEQUENCE, &list));
  const auto keep = own(list);
  maps.clear(); // the sequence has separate memory
  size_t count = 0;
  must(ort().GetValueCount(list, &count));
  CHECK(count == 2);
  OrtTypeInfo* type = nullptr;
  must(ort().GetTypeInfo(list, &type));
  CHECK(key_in_list(type) == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  ort().ReleaseTypeInfo(type);
  OrtValue *second = nullptr, *part = nullptr;
  must(ort().GetValue(list, 1, allocator(), &second));
  const auto map = own(second);
  must(ort().GetValue(second, 0, allocator(), &part));
  CHECK(whole_numbers(own(part).get()) == std::vector<int64_t>{7, 9});
  must(ort().GetValue(second, 1, allocator(), &part));
  CHECK(floats(own(part).get()) == std::vector<float>{5, 2});
  CHECK(problem_of(ort().GetValue(list, 2, allocator(), &part)).code == ORT_RUNTIME_EXCEPTION);

  std::vector<float> one{1};
  const auto tensor = over(one, {1});
  const OrtValue* mixed[] = {second, tensor.get()};
  CHECK(problem_of(ort().CreateValue(mixed, 2, ONNX_TYPE_SEQUENCE, &part)).code == ORT_INVALID_ARGUMENT);
}
