// Options, loggers, profiles, allocators, providers and devices.
#include "compat/onnxruntime/client.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

using namespace troupe::test;
using Catch::Contains;

namespace {

/// An allocator of the client that counts.
struct counting_allocator : OrtAllocator {
  int living = 0;

  counting_allocator() : OrtAllocator{} {
    version = 14; // of a client that knows no later members
    Alloc = [](OrtAllocator* self, size_t bytes) {
      ++static_cast<counting_allocator*>(self)->living;
      return std::malloc(bytes);
    };
    Free = [](OrtAllocator* self, void* data) {
      --static_cast<counting_allocator*>(self)->living;
      std::free(data);
    };
  }
};

struct heard {
  std::mutex mutex;
  std::vector<std::string> messages;

  bool has(const std::string& part) {
    const std::lock_guard lock(mutex);
    return std::any_of(messages.begin(), messages.end(), [&](auto& m) { return m.find(part) != std::string::npos; });
  }
};

void hear(void* to, OrtLoggingLevel /*severity*/, const char* /*category*/, const char* id, const char* /*where*/,
          const char* message) {
  auto& all = *static_cast<heard*>(to);
  const std::lock_guard lock(all.mutex);
  all.messages.push_back(std::string(id) + ": " + message);
}

} // namespace

TEST_CASE("onnxruntime: values and texts come from the client's allocator", "[onnxruntime]") {
  const auto env = make_env();
  const auto session = make_session(env.get(), onnx_bytes::add(), make_options().get());
  counting_allocator mine;
  char* name = nullptr;
  must(ort().SessionGetInputName(session.get(), 0, &mine, &name));
  CHECK(std::string(name) == "a");
  CHECK(mine.living == 1);
  must(ort().AllocatorFree(&mine, name));

  const int64_t dims[] = {3, 2};
  OrtValue* value = nullptr;
  must(ort().CreateTensorAsOrtValue(&mine, dims, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  CHECK(mine.living == 1);
  ort().ReleaseValue(value);
  CHECK(mine.living == 0);

  void* data = mine.Alloc(&mine, 24);
  must(ort().CreateTensorWithDataAndDeleterAsOrtValue(&mine, data, 24, dims, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                                      &value));
  CHECK(mine.living == 1);
  ort().ReleaseValue(value);
  CHECK(mine.living == 0);
}

TEST_CASE("onnxruntime: the default allocator counts the memory that it gives", "[onnxruntime]") {
  const auto in_use = [] {
    OrtKeyValuePairs* pairs = nullptr;
    must(ort().AllocatorGetStats(allocator(), &pairs));
    const auto bytes = std::stoll(ort().GetKeyValue(pairs, "InUse"));
    ort().ReleaseKeyValuePairs(pairs);
    return bytes;
  };
  const auto before = in_use();
  void* data = nullptr;
  must(ort().AllocatorAlloc(allocator(), 1000, &data));
  CHECK(reinterpret_cast<uintptr_t>(data) % 64 == 0);
  CHECK(in_use() >= before + 1000);
  must(ort().AllocatorFree(allocator(), data));
  CHECK(in_use() == before);
}

TEST_CASE("onnxruntime: configuration entries are read back, and unknown ones of troupe refused", "[onnxruntime]") {
  const auto options = make_options();
  must(ort().AddSessionConfigEntry(options.get(), "session.use_env_allocators", "1"));
  int has = 0;
  must(ort().HasSessionConfigEntry(options.get(), "session.use_env_allocators", &has));
  CHECK(has == 1);
  size_t size = 0;
  must(ort().GetSessionConfigEntry(options.get(), "troupe.devices", nullptr, &size));
  REQUIRE(size == 4);
  char text[4];
  must(ort().GetSessionConfigEntry(options.get(), "troupe.devices", text, &size));
  CHECK(std::string(text) == "cpu");

  OrtSessionOptions* copied = nullptr;
  must(ort().CloneSessionOptions(options.get(), &copied));
  const owned<OrtSessionOptions> copy(copied, {ort().ReleaseSessionOptions});
  must(ort().HasSessionConfigEntry(copy.get(), "session.use_env_allocators", &has));
  CHECK(has == 1);

  problem p = problem_of(ort().AddSessionConfigEntry(options.get(), "troupe.colour", "green"));
  CHECK(p.code == ORT_INVALID_ARGUMENT);
  CHECK_THAT(p.message, Contains("troupe.colour") && Contains("troupe.policy"));
  p = problem_of(ort().AddSessionConfigEntry(options.get(), "session.disable_cpu_ep_fallback", "1"));
  CHECK(p.code == ORT_NOT_IMPLEMENTED);
  must(ort().AddSessionConfigEntry(options.get(), "session.set_denormal_as_zero", "1"));

  must(ort().AddSessionConfigEntry(options.get(), "troupe.policy", "best"));
  const auto env = make_env();
  const std::string model = onnx_bytes::add();
  OrtSession* session = nullptr;
  p = problem_of(ort().CreateSessionFromArray(env.get(), model.data(), model.size(), options.get(), &session));
  CHECK(p.code == ORT_INVALID_ARGUMENT);
  CHECK_THAT(p.message, Contains("'best'") && Contains("heft"));
}

TEST_CASE("onnxruntime: a dim may be stated", "[onnxruntime]") {
  const auto env = make_env();
  const auto options = make_options();
  must(ort().AddFreeDimensionOverrideByName(options.get(), "n", 3));
  must(ort().AddFreeDimensionOverrideByName(options.get(), "of_another_model", 7));
  const auto session = make_session(env.get(), onnx_bytes::add(), options.get());
  OrtTypeInfo* type = nullptr;
  must(ort().SessionGetInputTypeInfo(session.get(), 0, &type));
  const owned<OrtTypeInfo> keep(type, {ort().ReleaseTypeInfo});
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  int64_t dims[2];
  must(ort().CastTypeInfoToTensorInfo(type, &tensor));
  must(ort().GetDimensions(tensor, dims, 2));
  CHECK(dims[0] == 3);
  std::vector<float> a(4, 1), b(4, 1), longer(6, 1);
  OrtValue* sum = nullptr;
  CHECK(problem_of(run(session.get(), {"a", "b"}, {over(a, {2, 2}).get(), over(b, {2, 2}).get()}, "c", &sum)).code ==
        ORT_INVALID_ARGUMENT);
  must(run(session.get(), {"a", "b"}, {over(longer, {3, 2}).get(), over(longer, {3, 2}).get()}, "c", &sum));
  CHECK(floats(own(sum).get()) == std::vector<float>(6, 2));
}

TEST_CASE("onnxruntime: other providers are told of in the client's log", "[onnxruntime]") {
  heard all;
  OrtEnv* env = nullptr;
  must(ort().CreateEnvWithCustomLogger(hear, &all, ORT_LOGGING_LEVEL_WARNING, "mine", &env));
  const owned<OrtEnv> keep(env, {ort().ReleaseEnv});
  const auto options = make_options();
  must(ort().SessionOptionsAppendExecutionProvider(options.get(), "QNN", nullptr, nullptr, 0));
  CHECK(all.has("mine: provider 'QNN': troupe's own devices"));
  must(ort().SessionOptionsAppendExecutionProvider(options.get(), "CPU", nullptr, nullptr, 0));
  CHECK_FALSE(all.has("'CPU'"));
  const char *key = "policy", *value = "heft";
  must(ort().SessionOptionsAppendExecutionProvider(options.get(), "TroupeExecutionProvider", &key, &value, 1));
  int has = 0;
  must(ort().HasSessionConfigEntry(options.get(), "troupe.policy", &has));
  CHECK(has == 1);
  char** names = nullptr;
  int count = 0;
  must(ort().GetAvailableProviders(&names, &count));
  REQUIRE(count == 2);
  CHECK(std::string(names[0]) == "TroupeExecutionProvider");
  CHECK(std::string(names[1]) == "CPUExecutionProvider");
  must(ort().ReleaseAvailableProviders(names, count));
}

TEST_CASE("onnxruntime: the engine's devices are listed, and may be chosen", "[onnxruntime]") {
  setenv("TROUPE_DEVICES", "cpu*2", 1);
  const auto env = make_env();
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  must(ort().GetEpDevices(env.get(), &devices, &count));
  unsetenv("TROUPE_DEVICES");
  REQUIRE(count == 2);
  CHECK(std::string(ort().EpDevice_EpName(devices[1])) == "TroupeExecutionProvider");
  CHECK(ort().HardwareDevice_Type(ort().EpDevice_Device(devices[1])) == OrtHardwareDeviceType_CPU);
  CHECK(std::string(ort().GetKeyValue(ort().EpDevice_EpMetadata(devices[1]), "troupe.name")) == "cpu#1");
  OrtSessionOptions* made = nullptr;
  must(ort().CreateSessionOptions(&made));
  const owned<OrtSessionOptions> options(made, {ort().ReleaseSessionOptions});
  must(ort().SessionOptionsAppendExecutionProvider_V2(made, env.get(), devices, 1, nullptr, nullptr, 0));
  size_t size = 0;
  char text[4];
  must(ort().GetSessionConfigEntry(made, "troupe.devices", nullptr, &size));
  REQUIRE(size == 4);
  must(ort().GetSessionConfigEntry(made, "troupe.devices", text, &size));
  CHECK(std::string(text) == "cpu");
}

TEST_CASE("onnxruntime: a profile is a file that traces open with", "[onnxruntime]") {
  const auto env = make_env();
  const auto options = make_options();
  const std::string prefix = (std::filesystem::temp_directory_path() / "troupe_ort_profile").string();
  must(ort().EnableProfiling(options.get(), prefix.c_str()));
  const auto session = make_session(env.get(), onnx_bytes::add(), options.get());
  std::vector<float> a{1, 2}, b{3, 4};
  for (int i = 0; i < 2; ++i) {
    OrtValue* sum = nullptr;
    must(run(session.get(), {"a", "b"}, {over(a, {1, 2}).get(), over(b, {1, 2}).get()}, "c", &sum));
    ort().ReleaseValue(sum);
  }
  char* name = nullptr;
  must(ort().SessionEndProfiling(session.get(), allocator(), &name));
  const std::filesystem::path file = name;
  must(ort().AllocatorFree(allocator(), name));
  CHECK_THAT(file.string(), Catch::StartsWith(prefix) && Catch::EndsWith(".json"));
  const nlohmann::json events = nlohmann::json::parse(std::ifstream(file));
  const auto nodes =
      std::count_if(events.begin(), events.end(), [](const auto& e) { return e.value("cat", "") == "node"; });
  CHECK(nodes == 2); // one a run
  std::filesystem::remove(file);
  const auto plain = make_session(env.get(), onnx_bytes::add(), make_options().get());
  must(ort().SessionEndProfiling(plain.get(), allocator(), &name)); // a session without a profile has no file
  CHECK(std::string(name).empty());
  must(ort().AllocatorFree(allocator(), name));
}

TEST_CASE("onnxruntime: memory is compared by kind", "[onnxruntime]") {
  OrtMemoryInfo *pinned = nullptr, *other = nullptr;
  must(ort().CreateMemoryInfo("CudaPinned", OrtDeviceAllocator, 0, OrtMemTypeCPUOutput, &pinned));
  must(ort().CreateMemoryInfo("Cuda", OrtDeviceAllocator, 0, OrtMemTypeDefault, &other));
  int differ = 0;
  must(ort().CompareMemoryInfo(pinned, other, &differ));
  CHECK(differ != 0);
  must(ort().CompareMemoryInfo(pinned, pinned, &differ));
  CHECK(differ == 0);
  OrtMemoryInfoDeviceType device = OrtMemoryInfoDeviceType_NPU;
  ort().MemoryInfoGetDeviceType(other, &device);
  CHECK(device == OrtMemoryInfoDeviceType_GPU);
  float data = 0;
  const int64_t dims[] = {1};
  OrtValue* value = nullptr;
  CHECK(problem_of(ort().CreateTensorWithDataAsOrtValue(other, &data, sizeof(data), dims, 1,
                                                        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value))
            .code == ORT_NOT_IMPLEMENTED);
  ort().ReleaseMemoryInfo(pinned);
  ort().ReleaseMemoryInfo(other);
}

TEST_CASE("onnxruntime: what clients ask for at every start is accepted", "[onnxruntime]") {
  const auto env = make_env();
  must(ort().EnableTelemetryEvents(env.get())); // the crate `ort` does, unless it is told not to
  must(ort().DisableTelemetryEvents(env.get()));
  OrtThreadingOptions* threads = nullptr;
  must(ort().CreateThreadingOptions(&threads));
  const owned<OrtThreadingOptions> keep(threads, {ort().ReleaseThreadingOptions});
  must(ort().SetGlobalDenormalAsZero(threads));
  must(ort().SetGlobalIntraOpNumThreads(threads, -1));
  const auto options = make_options();
  must(ort().AddFreeDimensionOverride(options.get(), "DATA_BATCH", 1));
  must(ort().SetIntraOpNumThreads(options.get(), -1)); // as many as there are
  must(ort().SetInterOpNumThreads(options.get(), -1));
  const auto session = make_session(env.get(), onnx_bytes::add(), options.get());
  std::vector<float> a{1, 2};
  OrtValue* sum = nullptr;
  must(run(session.get(), {"a", "b"}, {over(a, {1, 2}).get(), over(a, {1, 2}).get()}, "c", &sum));
  CHECK(floats(own(sum).get()) == std::vector<float>{2, 4});
}
