// The table itself: versions, slots, refusals.
#include "compat/onnxruntime/client.hpp"

#include <cstring>
#include <dlfcn.h>

using namespace troupe::test;
using Catch::Contains;

TEST_CASE("onnxruntime: every known version has a table, others have none", "[onnxruntime]") {
  const OrtApiBase* base = OrtGetApiBase();
  CHECK(std::string(base->GetVersionString()) == "1.30.0");
  for (uint32_t version = 1; version <= 30; ++version)
    CHECK(base->GetApi(version) == &ort());
  CHECK(base->GetApi(0) == nullptr);
  CHECK(base->GetApi(31) == nullptr);
}

TEST_CASE("onnxruntime: programs find functions by the version that they were linked to", "[onnxruntime]") {
  for (const char* file : {"libonnxruntime.so.1", "libonnxruntime.so.1.14.0", "libonnxruntime.so.1.21"}) {
    INFO(file);
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    for (const std::string name : {"OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU",
                                   "OrtSessionOptionsAppendExecutionProvider_Dnnl"})
      for (int minor = 14; minor <= 30; ++minor)
        for (const char* patch : {"", ".0", ".4"}) {
          const std::string version = "VERS_1." + std::to_string(minor) + patch; // Debian's has no patch
          INFO(name << " of " << version);
          CHECK(dlvsym(library, name.c_str(), version.c_str()) != nullptr);
        }
    dlclose(library);
  }
}

TEST_CASE("onnxruntime: no slot is empty", "[onnxruntime]") {
  constexpr size_t slots = sizeof(OrtApi) / sizeof(void*);
  static_assert(slots == 426); // of version 30
  void* pointers[slots];
  std::memcpy(pointers, &ort(), sizeof(OrtApi));
  for (size_t slot = 0; slot < slots; ++slot)
    CHECK(pointers[slot] != nullptr);
}

TEST_CASE("onnxruntime: a refused call says what and why", "[onnxruntime]") {
  OrtCustomOpDomain* domain = nullptr;
  problem p = problem_of(ort().CreateCustomOpDomain("mine", &domain));
  CHECK(p.code == ORT_NOT_IMPLEMENTED);
  CHECK_THAT(p.message, Contains("CreateCustomOpDomain: ") && Contains("operators of the client"));

  OrtLoraAdapter* adapter = nullptr;
  p = problem_of(ort().CreateLoraAdapter("a.onnx_adapter", allocator(), &adapter));
  CHECK(p.code == ORT_NOT_IMPLEMENTED);
  CHECK_THAT(p.message, Contains("CreateLoraAdapter: ") && Contains("merge them into the model"));

  CHECK(ort().GetTrainingApi(30) == nullptr);
  OrtModelCompilationOptions* options = nullptr;
  p = problem_of(ort().GetCompileApi()->CreateModelCompilationOptionsFromSessionOptions(nullptr, nullptr, &options));
  CHECK(p.code == ORT_NOT_IMPLEMENTED);
  OrtGraph* graph = nullptr;
  CHECK(problem_of(ort().GetModelEditorApi()->CreateGraph(&graph)).code == ORT_NOT_IMPLEMENTED);
  CHECK(problem_of(ort().GetInteropApi()->DeinitGraphicsInteropForEpDevice(nullptr)).code == ORT_NOT_IMPLEMENTED);
}

TEST_CASE("onnxruntime: a null pointer is an error that names it", "[onnxruntime]") {
  const problem p = problem_of(ort().CreateSession(nullptr, "x.onnx", nullptr, nullptr));
  CHECK(p.code == ORT_INVALID_ARGUMENT);
  CHECK_THAT(p.message, Contains("the place for the session is null"));
  CHECK(problem_of(ort().Run(nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr)).code == ORT_INVALID_ARGUMENT);
  CHECK(problem_of(ort().IsTensor(nullptr, nullptr)).code == ORT_INVALID_ARGUMENT);
  CHECK(problem_of(ort().AddSessionConfigEntry(nullptr, nullptr, nullptr)).code == ORT_INVALID_ARGUMENT);
}

TEST_CASE("onnxruntime: a handle is released once", "[onnxruntime]") {
  OrtEnv* env = nullptr;
  must(ort().CreateEnv(ORT_LOGGING_LEVEL_WARNING, "test", &env));
  ort().ReleaseEnv(env);
  ort().ReleaseEnv(env);     // a second time: stderr says so, and nothing happens
  ort().ReleaseEnv(nullptr); // null is nothing to release
  int other = 0;
  ort().ReleaseValue(reinterpret_cast<OrtValue*>(&other)); // never was a handle
  CHECK(other == 0);

  auto session = owned<OrtSession>();
  {
    const auto short_lived = make_env();
    session = make_session(short_lived.get(), onnx_bytes::add(), make_options().get());
  } // the environment goes before its session, which works on
  std::vector<float> a{1, 2}, b{3, 4};
  const auto first = over(a, {1, 2}), second = over(b, {1, 2});
  OrtValue* sum = nullptr;
  must(run(session.get(), {"a", "b"}, {first.get(), second.get()}, "c", &sum));
  OrtIoBinding* binding = nullptr;
  must(ort().CreateIoBinding(session.get(), &binding));
  OrtSession* gone = session.get();
  session.reset(); // and the session before its binding, and the value that it made
  CHECK(floats(sum) == std::vector<float>{4, 6});
  ort().ReleaseValue(sum);
  const auto refused = [](OrtStatus* status) {
    const problem p = problem_of(status);
    CHECK(p.code == ORT_INVALID_ARGUMENT);
    CHECK_THAT(p.message, Contains("session has been released"));
  };
  refused(ort().BindInput(binding, "a", first.get()));
  refused(ort().RunWithBinding(gone, nullptr, binding));
  refused(run(gone, {"a", "b"}, {first.get(), second.get()}, "c", &sum));
  ort().ReleaseIoBinding(binding);
}
