// A client of the C interface, as small as C++ allows: handles that release themselves, statuses that are looked at.
#pragma once

#include "compat/onnxruntime/api.hpp"
#include "compat/onnxruntime/models.hpp"
#include "support/catch.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::test {

/// Returns the newest table.
inline const OrtApi& ort() {
  static const OrtApi& api = *OrtGetApiBase()->GetApi(30);
  return api;
}

/// The code of an error; ORT_OK if there was none.
struct problem {
  OrtErrorCode code = ORT_OK;
  std::string message;
};

/// Reads a status and releases it.
inline problem problem_of(OrtStatus* status) {
  if (!status)
    return {};
  problem p{ort().GetErrorCode(status), ort().GetErrorMessage(status)};
  ort().ReleaseStatus(status);
  return p;
}

/// Requires success.
inline void must(OrtStatus* status) {
  const problem p = problem_of(status);
  INFO(p.message);
  REQUIRE(p.code == ORT_OK);
}

template <class T>
struct releaser {
  void (*release)(T*) = nullptr;
  void operator()(T* handle) const { release(handle); }
};
template <class T>
using owned = std::unique_ptr<T, releaser<T>>;

inline owned<OrtEnv> make_env() {
  OrtEnv* env = nullptr;
  must(ort().CreateEnv(ORT_LOGGING_LEVEL_WARNING, "test", &env));
  return {env, {ort().ReleaseEnv}};
}

inline owned<OrtSessionOptions> make_options(const char* devices = "cpu") {
  OrtSessionOptions* options = nullptr;
  must(ort().CreateSessionOptions(&options));
  must(ort().AddSessionConfigEntry(options, "troupe.devices", devices));
  return {options, {ort().ReleaseSessionOptions}};
}

inline owned<OrtSession> make_session(const OrtEnv* env, const std::string& model, const OrtSessionOptions* options) {
  OrtSession* session = nullptr;
  must(ort().CreateSessionFromArray(env, model.data(), model.size(), options, &session));
  return {session, {ort().ReleaseSession}};
}

inline owned<OrtValue> own(OrtValue* value) {
  return {value, {ort().ReleaseValue}};
}

inline OrtAllocator* allocator() {
  OrtAllocator* made = nullptr;
  must(ort().GetAllocatorWithDefaultOptions(&made));
  return made;
}

inline owned<OrtMemoryInfo> cpu() {
  OrtMemoryInfo* memory = nullptr;
  must(ort().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  return {memory, {ort().ReleaseMemoryInfo}};
}

/// Returns a tensor over the client's floats.
inline owned<OrtValue> over(std::vector<float>& data, const std::vector<int64_t>& dims) {
  OrtValue* value = nullptr;
  must(ort().CreateTensorWithDataAsOrtValue(cpu().get(), data.data(), data.size() * sizeof(float), dims.data(),
                                            dims.size(), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  return own(value);
}

/// The same of whole numbers.
inline owned<OrtValue> over(std::vector<int64_t>& data, const std::vector<int64_t>& dims) {
  OrtValue* value = nullptr;
  must(ort().CreateTensorWithDataAsOrtValue(cpu().get(), data.data(), data.size() * sizeof(int64_t), dims.data(),
                                            dims.size(), ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &value));
  return own(value);
}

/// Returns an empty tensor of strings.
inline owned<OrtValue> string_tensor(const std::vector<int64_t>& dims) {
  OrtValue* value = nullptr;
  must(ort().CreateTensorAsOrtValue(allocator(), dims.data(), dims.size(), ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
                                    &value));
  return own(value);
}

inline std::vector<float> floats(OrtValue* value) {
  size_t bytes = 0;
  void* data = nullptr;
  must(ort().GetTensorSizeInBytes(value, &bytes));
  must(ort().GetTensorMutableData(value, &data));
  return {static_cast<float*>(data), static_cast<float*>(data) + bytes / sizeof(float)};
}

/// Runs a session of one output.
inline OrtStatus* run(OrtSession* session, const std::vector<const char*>& names,
                      const std::vector<const OrtValue*>& inputs, const char* output, OrtValue** made,
                      const OrtRunOptions* options = nullptr) {
  return ort().Run(session, options, names.data(), inputs.data(), inputs.size(), &output, 1, made);
}

} // namespace troupe::test
