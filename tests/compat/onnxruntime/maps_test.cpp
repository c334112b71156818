// Maps, and sequences of them.
#include "compat/onnxruntime/client.hpp"

#include <utility>

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

/// Returns a model that uses operators of ai.onnx.ml too.
std::string with_ml(const graph_parts& parts) {
  return model(parts) + field(8, field(1, std::string("ai.onnx.ml")) + field(2, int64_t{2}));
}

/// x [n, 3] → ZipMap with these labels; `labels` is the attribute.
std::string zip_map(const std::string& labels, int key) {
  return with_ml({.nodes = {node("ZipMap", {"x"}, {"y"}, {labels}) + field(7, std::string("ai.onnx.ml"))},
                  .inputs = {value("x", tensor_type(1, {"n", "3"}))},
                  .outputs = {value("y", sequence_type(map_type(key, 1)))},
                  .initializers = {}});
}

/// Returns a map of these parts.
owned<OrtValue> map_of(const owned<OrtValue>& keys, const owned<OrtValue>& values) {
  const OrtValue* parts[] = {keys.get(), values.get()};
  OrtValue* map = nullptr;
  must(ort().CreateValue(parts, 2, ONNX_TYPE_MAP, &map));
  return own(map);
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

TEST_CASE("onnxruntime: a map goes in", "[onnxruntime]") {
  const auto env = make_env();
  const auto session =
      make_session(env.get(),
                   with_ml({.nodes = {node("CastMap", {"x"}, {"y"}) + field(7, std::string("ai.onnx.ml")),
                                      node("Add", {"y", "by"}, {"z"})},
                            .inputs = {value("x", map_type(7, 1)), value("by", tensor_type(1, {}))},
                            .outputs = {value("z", tensor_type(1, {"1", "n"}))},
                            .initializers = {}}),
                   make_options().get());
  size_t count = 0;
  must(ort().SessionGetInputCount(session.get(), &count));
  CHECK(count == 2);
  char* name = nullptr;
  must(ort().SessionGetInputName(session.get(), 0, allocator(), &name));
  CHECK(std::string(name) == "x");
  must(ort().AllocatorFree(allocator(), name));
  OrtTypeInfo* declared = nullptr;
  must(ort().SessionGetInputTypeInfo(session.get(), 0, &declared));
  CHECK(key_of(owned<OrtTypeInfo>(declared, {ort().ReleaseTypeInfo}).get()) == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);

  std::vector<int64_t> labels{9, -1};
  std::vector<float> numbers{5, 6}, ten{10};
  const auto map = map_of(over(labels, {2}), over(numbers, {2})), by = over(ten, {1});
  OrtValue* z = nullptr;
  must(run(session.get(), {"x", "by"}, {map.get(), by.get()}, "z", &z));
  CHECK(floats(own(std::exchange(z, nullptr)).get()) == std::vector<float>{16, 15}); // in the keys' order

  OrtIoBinding* binding = nullptr;
  must(ort().CreateIoBinding(session.get(), &binding));
  const owned<OrtIoBinding> keep(binding, {ort().ReleaseIoBinding});
  must(ort().BindInput(binding, "x", map.get()));

  const auto fails = [&](const OrtValue* value) {
    const problem p = problem_of(run(session.get(), {"x", "by"}, {value, by.get()}, "z", &z));
    CHECK(p.code == ORT_INVALID_ARGUMENT);
    return p.message;
  };
  CHECK(fails(by.get()) == "input 'x' is not a map; the model takes a map from int64 to float32");
  CHECK(fails(map_of(over(labels, {2}), over(labels, {2})).get()) ==
        "input 'x' is a map from int64 to int64; the model takes a map from int64 to float32");
  const problem p = problem_of(run(session.get(), {"x", "by"}, {map.get(), map.get()}, "z", &z));
  CHECK(p.code == ORT_INVALID_ARGUMENT);
  CHECK(p.message == "input 'by' is a map; the model takes float32");
}
