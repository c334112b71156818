// Sessions: where models come from, and questions of clients.
#include "compat/onnxruntime/client.hpp"

#include <filesystem>
#include <fstream>

using namespace troupe::test;
using namespace troupe::test::onnx_bytes;
using Catch::Contains;

namespace {

std::string text(char* made) {
  std::string copy = made ? made : "";
  must(ort().AllocatorFree(allocator(), made));
  return copy;
}

std::string input_name(const OrtSession* session, size_t index) {
  char* name = nullptr;
  must(ort().SessionGetInputName(session, index, allocator(), &name));
  return text(name);
}

problem load(const OrtEnv* env, const std::string& bytes, const OrtSessionOptions* options) {
  OrtSession* session = nullptr;
  const problem p = problem_of(ort().CreateSessionFromArray(env, bytes.data(), bytes.size(), options, &session));
  CHECK((p.code == ORT_OK) == (session != nullptr));
  ort().ReleaseSession(session);
  return p;
}

/// y = x + w, with w in `weight`.
std::string weighted(const std::string& weight, bool is_input) {
  const std::string type = tensor_type(1, {"2"});
  graph_parts parts{.nodes = {node("Add", {"x", "w"}, {"y"})},
                    .inputs = {value("x", type)},
                    .outputs = {value("y", type)},
                    .initializers = {weight}};
  if (is_input)
    parts.inputs.push_back(value("w", type));
  return model(parts);
}

void write(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::vector<float> run_weighted(OrtSession* session) {
  std::vector<float> x{1, 2};
  OrtValue* y = nullptr;
  must(run(session, {"x"}, {over(x, {2}).get()}, "y", &y));
  return floats(own(y).get());
}

} // namespace

TEST_CASE("onnxruntime: a session tells names, types and dims", "[onnxruntime]") {
  const auto env = make_env();
  const auto session = make_session(env.get(), add(), make_options().get());
  size_t count = 0;
  must(ort().SessionGetInputCount(session.get(), &count));
  REQUIRE(count == 2);
  CHECK(input_name(session.get(), 0) == "a");
  CHECK(input_name(session.get(), 1) == "b");
  must(ort().SessionGetOutputCount(session.get(), &count));
  CHECK(count == 1);

  OrtTypeInfo* type = nullptr;
  must(ort().SessionGetInputTypeInfo(session.get(), 0, &type));
  const owned<OrtTypeInfo> keep(type, {ort().ReleaseTypeInfo});
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  must(ort().GetOnnxTypeFromTypeInfo(type, &kind));
  CHECK(kind == ONNX_TYPE_TENSOR);
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  must(ort().CastTypeInfoToTensorInfo(type, &tensor));
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  must(ort().GetTensorElementType(tensor, &element));
  CHECK(element == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  must(ort().GetDimensionsCount(tensor, &count));
  REQUIRE(count == 2);
  int64_t dims[2];
  const char* symbols[2];
  must(ort().GetDimensions(tensor, dims, 2));
  must(ort().GetSymbolicDimensions(tensor, symbols, 2));
  CHECK(dims[0] == -1);
  CHECK(dims[1] == 2);
  CHECK(std::string(symbols[0]) == "n");
  CHECK(std::string(symbols[1]).empty());

  char* name = nullptr;
  const problem p = problem_of(ort().SessionGetInputName(session.get(), 2, allocator(), &name));
  CHECK(p.code == ORT_INVALID_ARGUMENT);
  CHECK_THAT(p.message, Contains("2"));
}

TEST_CASE("onnxruntime: models that cannot be loaded have ONNX Runtime's codes", "[onnxruntime]") {
  const auto env = make_env();
  const auto options = make_options();
  OrtSession* session = nullptr;
  problem p = problem_of(ort().CreateSession(env.get(), "no/such/model.onnx", options.get(), &session));
  CHECK(p.code == ORT_NO_SUCHFILE);
  CHECK_THAT(p.message, Contains("no/such/model.onnx"));
  // Of the model's own file alone: a client may fetch it then.
  const std::filesystem::path there = std::filesystem::temp_directory_path() / "troupe_ort_external.onnx";
  write(there, weighted(external("w", {2}, "no_file.bin", 0), false));
  p = problem_of(ort().CreateSession(env.get(), there.c_str(), options.get(), &session));
  CHECK(p.code == ORT_FAIL);
  CHECK_THAT(p.message, Contains("no_file.bin"));
  std::filesystem::remove(there);
  CHECK(load(env.get(), "this is no model", options.get()).code == ORT_INVALID_PROTOBUF);

  const std::string type = tensor_type(1, {"2"});
  p = load(env.get(),
           model({.nodes = {node("Frobnicate", {"x"}, {"y"}, {}, "the_strange_one")},
                  .inputs = {value("x", type)},
                  .outputs = {value("y", type)},
                  .initializers = {}}),
           options.get());
  CHECK(p.code == ORT_NOT_IMPLEMENTED);
  CHECK_THAT(p.message, Contains("Frobnicate") && Contains("the_strange_one"));

  p = load(env.get(),
           model({.nodes = {node("Add", {"x", "nothing"}, {"y"})},
                  .inputs = {value("x", type)},
                  .outputs = {value("y", type)},
                  .initializers = {}}),
           options.get());
  CHECK(p.code == ORT_INVALID_GRAPH);

  must(ort().SessionOptionsSetLoadCancellationFlag(options.get(), true));
  CHECK(load(env.get(), add(), options.get()).code == ORT_MODEL_LOAD_CANCELED);
}

TEST_CASE("onnxruntime: metadata is the file's", "[onnxruntime]") {
  const auto env = make_env();
  const auto session = make_session(env.get(), add(), make_options().get());
  OrtModelMetadata* about = nullptr;
  must(ort().SessionGetModelMetadata(session.get(), &about));
  const owned<OrtModelMetadata> keep(about, {ort().ReleaseModelMetadata});
  char* made = nullptr;
  must(ort().ModelMetadataGetProducerName(about, allocator(), &made));
  CHECK(text(made) == "a test");
  must(ort().ModelMetadataGetDomain(about, allocator(), &made));
  CHECK(text(made) == "example.org");
  must(ort().ModelMetadataGetGraphName(about, allocator(), &made));
  CHECK(text(made) == "made");
  int64_t version = 0;
  must(ort().ModelMetadataGetVersion(about, &version));
  CHECK(version == 3);
  must(ort().ModelMetadataLookupCustomMetadataMap(about, allocator(), "colour", &made));
  CHECK(text(made) == "green");
  must(ort().ModelMetadataLookupCustomMetadataMap(about, allocator(), "taste", &made));
  CHECK(made == nullptr);
  char** keys = nullptr;
  int64_t count = 0;
  must(ort().ModelMetadataGetCustomMetadataMapKeys(about, allocator(), &keys, &count));
  REQUIRE(count == 1);
  CHECK(text(keys[0]) == "colour");
  must(ort().AllocatorFree(allocator(), keys));
}

TEST_CASE("onnxruntime: an initializer that is an input may be given", "[onnxruntime]") {
  const auto env = make_env();
  const auto session =
      make_session(env.get(), weighted(initializer("w", {2}, std::vector<float>{10, 20}), true), make_options().get());
  size_t count = 0;
  must(ort().SessionGetInputCount(session.get(), &count));
  CHECK(count == 1);
  must(ort().SessionGetOverridableInitializerCount(session.get(), &count));
  REQUIRE(count == 1);
  char* name = nullptr;
  must(ort().SessionGetOverridableInitializerName(session.get(), 0, allocator(), &name));
  CHECK(text(name) == "w");
  CHECK(run_weighted(session.get()) == std::vector<float>{11, 22});
  std::vector<float> x{1, 2}, w{5, 5};
  OrtValue* y = nullptr;
  must(run(session.get(), {"x", "w"}, {over(x, {2}).get(), over(w, {2}).get()}, "y", &y));
  CHECK(floats(own(y).get()) == std::vector<float>{6, 7});
}

TEST_CASE("onnxruntime: initializers may be the client's", "[onnxruntime]") {
  const auto env = make_env();
  std::vector<float> w{0, 0, 100, 200};
  SECTION("as values") {
    const auto options = make_options();
    const auto other = over(w, {4});
    problem p = problem_of(ort().AddInitializer(options.get(), "w", other.get()));
    CHECK(p.code == ORT_OK);
    p = load(env.get(), weighted(initializer("w", {2}, std::vector<float>{1, 1}), false), options.get());
    CHECK(p.code == ORT_INVALID_ARGUMENT); // another shape
    CHECK_THAT(p.message, Contains("'w'"));
  }
  SECTION("as values in place of a file that is not there") {
    const auto options = make_options();
    std::vector<float> fitting{100, 200};
    const auto given = over(fitting, {2});
    const char* name = "w";
    const OrtValue* values[] = {given.get()};
    must(ort().AddExternalInitializers(options.get(), &name, values, 1));
    const auto session = make_session(env.get(), weighted(external("w", {2}, "no_file.bin", 0), false), options.get());
    CHECK(run_weighted(session.get()) == std::vector<float>{101, 202});
  }
  SECTION("as the bytes of a file") {
    const auto options = make_options();
    const char* name = "weights.bin";
    char* bytes[] = {reinterpret_cast<char*>(w.data())};
    const size_t length = w.size() * sizeof(float);
    must(ort().AddExternalInitializersFromFilesInMemory(options.get(), &name, bytes, &length, 1));
    const auto session = make_session(env.get(), weighted(external("w", {2}, "weights.bin", 8), false), options.get());
    CHECK(run_weighted(session.get()) == std::vector<float>{101, 202});
    CHECK(load(env.get(), weighted(external("w", {2}, "weights.bin", 12), false), options.get()).code ==
          ORT_INVALID_GRAPH); // beyond the end
  }
  SECTION("as a file in a folder") {
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / "troupe_ort_test";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "weights.bin", std::ios::binary)
        .write(reinterpret_cast<char*>(w.data()), static_cast<std::streamsize>(w.size() * sizeof(float)));
    const auto options = make_options();
    must(ort().AddSessionConfigEntry(options.get(), "session.model_external_initializers_file_folder_path",
                                     folder.c_str()));
    const auto session = make_session(env.get(), weighted(external("w", {2}, "weights.bin", 8), false), options.get());
    CHECK(run_weighted(session.get()) == std::vector<float>{101, 202});
    std::filesystem::remove_all(folder);
  }
}

TEST_CASE("onnxruntime: values that are given for initializers of other models are let be", "[onnxruntime]") {
  const auto env = make_env();
  const auto shared = make_options(), strict = make_options();
  std::vector<float> w{1, 2};
  const auto given = over(w, {2});
  must(ort().AddInitializer(shared.get(), "w", given.get()));
  CHECK(load(env.get(), add(), shared.get()).code == ORT_OK);
  const char* name = "w";
  const OrtValue* values[] = {given.get()};
  must(ort().AddExternalInitializers(strict.get(), &name, values, 1));
  CHECK(load(env.get(), add(), strict.get()).code == ORT_INVALID_ARGUMENT);
}

TEST_CASE("onnxruntime: the model is written where the options say, whole", "[onnxruntime]") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "troupe_ort_saved";
  const std::filesystem::path from = folder / "from", to = folder / "to";
  std::filesystem::create_directories(from);
  std::filesystem::create_directories(to);
  write(from / "weights.bin", std::string(8, '\0'));
  write(from / "model.onnx", weighted(external("w", {2}, "weights.bin", 0), false));
  const auto env = make_env();
  const auto open = [&](const std::filesystem::path& file, const std::filesystem::path& saved) {
    const auto options = make_options();
    if (!saved.empty())
      must(ort().SetOptimizedModelFilePath(options.get(), saved.c_str()));
    OrtSession* session = nullptr;
    const problem p = problem_of(ort().CreateSession(env.get(), file.c_str(), options.get(), &session));
    CHECK((p.code == ORT_OK) == (session != nullptr));
    return std::pair(p, owned<OrtSession>(session, {ort().ReleaseSession}));
  };
  CHECK(open(from / "model.onnx", to / "saved.onnx").first.code == ORT_OK);
  CHECK(open(from / "model.onnx", from / "beside.onnx").first.code == ORT_OK);
  CHECK(std::filesystem::file_size(from / "beside.onnx") == std::filesystem::file_size(from / "model.onnx"));
  write(from / "weights.bin", std::string());
  const auto [p, session] = open(to / "saved.onnx", {}); // it needs no other file
  REQUIRE(p.code == ORT_OK);
  CHECK(run_weighted(session.get()) == std::vector<float>{1, 2});
  std::filesystem::remove(from / "weights.bin"); // nor does a model whose weights the client gives
  const auto options = make_options();
  std::vector<float> given{10, 20};
  must(ort().AddInitializer(options.get(), "w", over(given, {2}).get()));
  must(ort().SetOptimizedModelFilePath(options.get(), (to / "given.onnx").c_str()));
  OrtSession* made = nullptr;
  must(ort().CreateSession(env.get(), (from / "model.onnx").c_str(), options.get(), &made));
  ort().ReleaseSession(made);
  CHECK(run_weighted(open(to / "given.onnx", {}).second.get()) == std::vector<float>{11, 22});
  CHECK(open(to / "saved.onnx", to / "saved.ort").first.code == ORT_NOT_IMPLEMENTED);
  CHECK(open(to / "saved.onnx", folder / "none" / "saved.onnx").first.code == ORT_FAIL);
  std::filesystem::remove_all(folder);
}
