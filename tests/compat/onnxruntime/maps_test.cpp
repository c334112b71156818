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

/// x [n, 3] → ZipMap with these labels; `labels` is the attribute.
std::string zip_map(const std::string& labels, int key) {
  const std::string map = field(5, field(1, int64_t{key}) + field(2, tensor_type(1, {})));
  return model({.nodes = {node("ZipMap", {"x"}, {"y"}, {labels}) + field(7, std::string("ai.onnx.ml"))},
                .inputs = {value("x", tensor_type(1, {"n", "3"}))},
                .outputs = {value("y", sequence_type(map))},
                .initializers = {}}) +
         field(8, field(1, std::string("ai.onnx.ml")) + field(2, int64_t{2}));
}

/// Returns an element of a sequence, or a part of a map.
owned<OrtValue> element(const OrtValue* of, int index) {
  OrtValue* made = nullptr;
  must(ort().GetValue(of, index, allocator(), &made));
  return own(made);
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

TEST_CASE("onnxruntime: ZipMap gives a map of each row, in the labels' order", "[onnxruntime]") {
  const std::string numbers =
      field(1, std::string("classlabels_int64s")) + field(8, int64_t{9}) + field(8, int64_t{-7}) + field(8, int64_t{8});
  const std::string words = field(1, std::string("classlabels_strings")) + field(9, std::string("red")) +
                            field(9, std::string("blue")) + field(9, std::string("green"));
  const auto env = make_env();
  std::vector<float> x{1, 2, 3, 4, 5, 6}, none;
  for (const bool of_words : {false, true}) {
    const std::string labels = (of_words ? words : numbers) + field(20, int64_t{of_words ? 8 : 7});
    const auto session = make_session(env.get(), zip_map(labels, of_words ? 8 : 7), make_options().get());
    const ONNXTensorElementDataType key =
        of_words ? ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING : ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    OrtTypeInfo* declared = nullptr;
    must(ort().SessionGetOutputTypeInfo(session.get(), 0, &declared));
    CHECK(key_in_list(owned<OrtTypeInfo>(declared, {ort().ReleaseTypeInfo}).get()) == key);

    OrtValue* y = nullptr;
    must(run(session.get(), {"x"}, {over(x, {2, 3}).get()}, "y", &y));
    const auto list = own(y);
    size_t count = 0;
    must(ort().GetValueCount(y, &count));
    REQUIRE(count == 2);
    const auto first = element(y, 0), second = element(y, 1);
    CHECK(floats(element(first.get(), 1).get()) == std::vector<float>{2, 3, 1}); // -7 8 9, and blue green red
    CHECK(floats(element(second.get(), 1).get()) == std::vector<float>{5, 6, 4});
    const auto keys = element(second.get(), 0);
    if (of_words) {
      std::string text(4, ' ');
      must(ort().GetStringTensorElement(keys.get(), text.size(), 0, text.data()));
      CHECK(text == "blue");
    } else {
      CHECK(whole_numbers(keys.get()) == std::vector<int64_t>{-7, 8, 9});
    }

    must(run(session.get(), {"x"}, {over(none, {0, 3}).get()}, "y", &y));
    const auto empty = own(y);
    must(ort().GetValueCount(y, &count));
    CHECK(count == 0);
    OrtTypeInfo* type = nullptr;
    must(ort().GetTypeInfo(y, &type));
    CHECK(key_in_list(owned<OrtTypeInfo>(type, {ort().ReleaseTypeInfo}).get()) == key);
  }
}
