// Values: tensors of numbers and strings, sequences, optionals.
#include "compat/onnxruntime/client.hpp"

using namespace troupe::test;
using namespace troupe::test::onnx_bytes;
using Catch::Contains;

namespace {

std::vector<std::string> texts(OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  must(ort().GetTensorTypeAndShape(value, &info));
  size_t count = 0, length = 0;
  must(ort().GetTensorShapeElementCount(info, &count));
  ort().ReleaseTensorTypeAndShapeInfo(info);
  must(ort().GetStringTensorDataLength(value, &length));
  std::string all(length, ' ');
  std::vector<size_t> offsets(count);
  must(ort().GetStringTensorContent(value, all.data(), all.size(), offsets.data(), count));
  std::vector<std::string> made;
  for (size_t i = 0; i < count; ++i)
    made.push_back(all.substr(offsets[i], (i + 1 < count ? offsets[i + 1] : length) - offsets[i]));
  return made;
}

} // namespace

TEST_CASE("onnxruntime: a tensor fits into the memory that it is over", "[onnxruntime]") {
  std::vector<float> data(6);
  const int64_t dims[] = {2, 4}, negative[] = {2, -1};
  OrtValue* value = nullptr;
  const auto memory = cpu();
  const auto make = [&](const int64_t* shape, ONNXTensorElementDataType type) {
    return problem_of(ort().CreateTensorWithDataAsOrtValue(memory.get(), data.data(), data.size() * sizeof(float),
                                                           shape, 2, type, &value));
  };
  CHECK_THAT(make(dims, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT).message, Contains("32") && Contains("24"));
  CHECK(make(negative, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT).code == ORT_INVALID_ARGUMENT);
  CHECK(make(dims, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING).code == ORT_INVALID_ARGUMENT); // room for no string object
  CHECK(make(dims, ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64).code == ORT_NOT_IMPLEMENTED);
  CHECK(value == nullptr);

  const auto fits = over(data, {2, 3});
  void* address = nullptr;
  const int64_t last[] = {1, 2}, beyond[] = {1, 3};
  must(ort().TensorAt(fits.get(), last, 2, &address));
  CHECK(address == &data[5]);
  CHECK(problem_of(ort().TensorAt(fits.get(), beyond, 2, &address)).code == ORT_INVALID_ARGUMENT);
  must(ort().GetTensorMutableData(fits.get(), &address));
  CHECK(address == data.data()); // no copy
}

TEST_CASE("onnxruntime: element types whose numbers differ from ONNX's keep their meaning", "[onnxruntime]") {
  const int64_t dims[] = {8};
  for (const auto& [type, bytes] : {std::pair{ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2, size_t{2}},
                                    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2, size_t{2}},
                                    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0, size_t{8}},
                                    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4, size_t{4}}}) {
    OrtValue* value = nullptr;
    must(ort().CreateTensorAsOrtValue(allocator(), dims, 1, type, &value));
    const auto keep = own(value);
    size_t size = 0, count = 0;
    must(ort().GetTensorSizeInBytes(value, &size));
    CHECK(size == bytes);
    const int64_t* shape = nullptr;
    ONNXTensorElementDataType told = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    must(ort().GetTensorElementTypeAndShapeDataReference(value, &told, &shape, &count));
    CHECK(told == type);
    CHECK(count == 1);
    CHECK(shape[0] == 8);
  }
}

TEST_CASE("onnxruntime: strings go in and out", "[onnxruntime]") {
  const auto env = make_env();
  const auto session = make_session(env.get(), strings(), make_options().get());
  const auto input = string_tensor({3});
  const char* given[] = {"eins", "", "drei"};
  must(ort().FillStringTensor(input.get(), given, 3));
  must(ort().FillStringTensorElement(input.get(), "zwei", 1));
  CHECK(problem_of(ort().FillStringTensorElement(input.get(), "vier", 3)).code == ORT_INVALID_ARGUMENT);
  char* buffer = nullptr;
  must(ort().GetResizedStringTensorElementBuffer(input.get(), 2, 2, &buffer));
  buffer[0] = 'D';
  OrtValue* output = nullptr;
  must(run(session.get(), {"x"}, {input.get()}, "y", &output));
  const auto keep = own(output);
  CHECK(texts(output) == std::vector<std::string>{"eins", "zwei", "Dr"});
  size_t length = 0;
  must(ort().GetStringTensorElementLength(output, 1, &length));
  REQUIRE(length == 4);
  std::string text(4, ' ');
  must(ort().GetStringTensorElement(output, 4, 1, text.data()));
  CHECK(text == "zwei");
  CHECK(problem_of(ort().GetStringTensorElement(output, 3, 1, text.data())).code == ORT_INVALID_ARGUMENT);
}

TEST_CASE("onnxruntime: sequences go in and out", "[onnxruntime]") {
  const std::string row = tensor_type(1, {"n"});
  const auto env = make_env();
  const auto session = make_session(env.get(),
                                    model({.nodes = {node("SequenceInsert", {"list", "x"}, {"longer"})},
                                           .inputs = {value("list", sequence_type(row)), value("x", row)},
                                           .outputs = {value("longer", sequence_type(row))},
                                           .initializers = {}}),
                                    make_options().get());
  OrtTypeInfo *type = nullptr, *element = nullptr;
  must(ort().SessionGetInputTypeInfo(session.get(), 0, &type));
  const OrtSequenceTypeInfo* sequence = nullptr;
  must(ort().CastTypeInfoToSequenceTypeInfo(type, &sequence));
  REQUIRE(sequence != nullptr);
  must(ort().GetSequenceElementType(sequence, &element));
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  must(ort().GetOnnxTypeFromTypeInfo(element, &kind));
  CHECK(kind == ONNX_TYPE_TENSOR);
  ort().ReleaseTypeInfo(element);
  ort().ReleaseTypeInfo(type);

  std::vector<float> a{1}, b{2, 3}, x{4, 5, 6};
  OrtValue *list = nullptr, *longer = nullptr;
  {
    const auto first = over(a, {1}), second = over(b, {2});
    const OrtValue* elements[] = {first.get(), second.get()};
    must(ort().CreateValue(elements, 2, ONNX_TYPE_SEQUENCE, &list));
  }
  const auto keep = own(list);
  a[0] = 100; // the sequence has separate memory
  must(run(session.get(), {"list", "x"}, {list, over(x, {3}).get()}, "longer", &longer));
  const auto made = own(longer);
  must(ort().GetValueType(longer, &kind));
  CHECK(kind == ONNX_TYPE_SEQUENCE);
  size_t count = 0;
  must(ort().GetValueCount(longer, &count));
  REQUIRE(count == 3);
  x[0] = 100;
  const std::vector<std::vector<float>> expected{{1}, {2, 3}, {4, 5, 6}};
  for (int i = 0; i < 3; ++i) {
    OrtValue* one = nullptr;
    must(ort().GetValue(longer, i, allocator(), &one));
    CHECK(floats(own(one).get()) == expected[static_cast<size_t>(i)]);
  }
  OrtValue* none = nullptr;
  CHECK(problem_of(ort().GetValue(longer, 3, allocator(), &none)).code == ORT_RUNTIME_EXCEPTION);
}

TEST_CASE("onnxruntime: strings of a C++ program stay where they are", "[onnxruntime]") {
  std::vector<std::string> words{"one", "a longer one that has memory of its own"}, target(2);
  const int64_t dims[] = {2};
  OrtValue *x = nullptr, *y = nullptr;
  const auto over_strings = [&](std::vector<std::string>& strings, OrtValue** out) {
    return ort().CreateTensorWithDataAsOrtValue(cpu().get(), strings.data(), strings.size() * sizeof(std::string), dims,
                                                1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, out);
  };
  must(over_strings(words, &x));
  must(over_strings(target, &y));
  const auto keep_x = own(x), keep_y = own(y);
  const auto env = make_env();
  const auto session = make_session(env.get(), onnx_bytes::strings(), make_options().get());
  must(run(session.get(), {"x"}, {x}, "y", &y));
  CHECK(target == words);
  std::vector<std::string> few(1);
  OrtValue* none = nullptr;
  CHECK(problem_of(over_strings(few, &none)).code == ORT_INVALID_ARGUMENT);
}

TEST_CASE("onnxruntime: an optional is its value, or has none", "[onnxruntime]") {
  const std::string row = tensor_type(1, {"n"});
  const auto env = make_env();
  const auto session = make_session(env.get(),
                                    model({.nodes = {node("OptionalHasElement", {"x"}, {"there"})},
                                           .inputs = {value("x", optional_type(row))},
                                           .outputs = {value("there", tensor_type(9, {}))},
                                           .initializers = {}}),
                                    make_options().get());
  std::vector<float> data{1};
  const auto some = over(data, {1});
  for (const OrtValue* input : {static_cast<const OrtValue*>(some.get()), static_cast<const OrtValue*>(nullptr)}) {
    OrtValue* there = nullptr;
    must(run(session.get(), {"x"}, {input}, "there", &there));
    const auto keep = own(there);
    void* answer = nullptr;
    must(ort().GetTensorMutableData(there, &answer));
    CHECK(*static_cast<bool*>(answer) == (input != nullptr));
  }
  int has = 0;
  must(ort().HasValue(some.get(), &has));
  CHECK(has == 1);
}
