// Execution providers: troupe's own devices take the place of all. Calls that append another provider say so in the log
// (slots_*.inc); here is what clients see of providers besides, and the options that they fill in for some.
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/log.hpp"
#include "compat/onnxruntime/memory.hpp"
#include "compat/onnxruntime/reasons.hpp"
#include "compat/onnxruntime/session_options.hpp"
#include "compat/onnxruntime/status.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

namespace troupe::ort {

/// Options of a provider that is not there: kept, so that a client reads what it wrote.
struct provider_texts {
  std::map<std::string, std::string> texts;
};

} // namespace troupe::ort

struct OrtTensorRTProviderOptionsV2 : troupe::ort::provider_texts {};
struct OrtCUDAProviderOptionsV2 : troupe::ort::provider_texts {};
struct OrtCANNProviderOptions : troupe::ort::provider_texts {};
struct OrtDnnlProviderOptions : troupe::ort::provider_texts {};

namespace troupe::ort {
namespace {

constexpr auto provider_names = std::to_array<const char*>({"TroupeExecutionProvider", "CPUExecutionProvider"});

template <class Options>
OrtStatus* create_texts(Options** out) noexcept {
  return guarded([&] { given(out, "the place for the options") = make_handle<Options>(); });
}

OrtStatus* update_texts(provider_texts* options, const char* const* keys, const char* const* values,
                        size_t count) noexcept {
  return guarded([&] {
    provider_texts& o = given(options, "the provider's options");
    for (size_t i = 0; i < count; ++i) {
      const char* key = &given((&given(keys, "the keys"))[i], "a key");
      o.texts[key] = &given((&given(values, "the values"))[i], "a value");
    }
  });
}

/// "key=value;key=value", as ONNX Runtime writes them.
OrtStatus* read_texts(const provider_texts* options, OrtAllocator* allocator, char** out) noexcept {
  return guarded([&] {
    std::string text;
    for (const auto& [key, value] : given(options, "the provider's options").texts)
      text.append(text.empty() ? "" : ";").append(key).append("=").append(value);
    given(out, "the place for the text") = copy_text(allocator, text);
  });
}

/// Returns whether a name, with "ExecutionProvider" at its end or without, is one of ours.
bool is_ours(std::string_view name) {
  return std::ranges::any_of(provider_names, [&](std::string_view known) {
    return name == known || name == known.substr(0, known.size() - std::strlen("ExecutionProvider"));
  });
}

} // namespace

OrtStatus* GetAvailableProviders(char*** out, int* count) noexcept {
  return guarded([&] {
    char**& list = given(out, "the place for the providers");
    int& length = given(count, "the place for their number");
    list = std::make_unique<char*[]>(provider_names.size()).release();
    std::ranges::transform(provider_names, list, [](const char* name) { return const_cast<char*>(name); });
    length = static_cast<int>(provider_names.size());
  });
}

OrtStatus* ReleaseAvailableProviders(char** list, int /*count*/) noexcept {
  delete[] list;
  return nullptr;
}

/// Options of our own provider are configuration entries: "devices" is "troupe.devices".
OrtStatus* SessionOptionsAppendExecutionProvider(OrtSessionOptions* options, const char* name, const char* const* keys,
                                                 const char* const* values, size_t count) noexcept {
  return guarded([&] {
    OrtSessionOptions& o = given(options, "the session options");
    const std::string provider = &given(name, "the provider's name");
    if (!is_ours(provider)) {
      note(ORT_LOGGING_LEVEL_WARNING, "provider '" + provider + "': " + reasons::other_providers);
      return;
    }
    for (size_t i = 0; provider.starts_with("Troupe") && i < count; ++i) {
      const std::string key = std::string("troupe.") + &given((&given(keys, "the keys"))[i], "a key");
      const std::string value = &given((&given(values, "the values"))[i], "a value");
      check_entry(key, value);
      o.entries[key] = value;
    }
  });
}

OrtStatus* SessionOptionsSetEpSelectionPolicy(OrtSessionOptions* options,
                                              OrtExecutionProviderDevicePolicy policy) noexcept {
  return guarded([&] {
    OrtSessionOptions& o = given(options, "the session options");
    if (policy == OrtExecutionProviderDevicePolicy_PREFER_CPU)
      o.entries["troupe.devices"] = "cpu";
    else
      o.entries.erase("troupe.devices");
  });
}

OrtStatus* CreateTensorRTProviderOptions(OrtTensorRTProviderOptionsV2** out) noexcept {
  return create_texts(out);
}
OrtStatus* UpdateTensorRTProviderOptions(OrtTensorRTProviderOptionsV2* options, const char* const* keys,
                                         const char* const* values, size_t count) noexcept {
  return update_texts(options, keys, values, count);
}
OrtStatus* GetTensorRTProviderOptionsAsString(const OrtTensorRTProviderOptionsV2* options, OrtAllocator* allocator,
                                              char** out) noexcept {
  return read_texts(options, allocator, out);
}
void ReleaseTensorRTProviderOptions(OrtTensorRTProviderOptionsV2* options) noexcept {
  release_handle(options, "ReleaseTensorRTProviderOptions");
}

OrtStatus* CreateCUDAProviderOptions(OrtCUDAProviderOptionsV2** out) noexcept {
  return create_texts(out);
}
OrtStatus* UpdateCUDAProviderOptions(OrtCUDAProviderOptionsV2* options, const char* const* keys,
                                     const char* const* values, size_t count) noexcept {
  return update_texts(options, keys, values, count);
}
OrtStatus* GetCUDAProviderOptionsAsString(const OrtCUDAProviderOptionsV2* options, OrtAllocator* allocator,
                                          char** out) noexcept {
  return read_texts(options, allocator, out);
}
void ReleaseCUDAProviderOptions(OrtCUDAProviderOptionsV2* options) noexcept {
  release_handle(options, "ReleaseCUDAProviderOptions");
}

OrtStatus* CreateCANNProviderOptions(OrtCANNProviderOptions** out) noexcept {
  return create_texts(out);
}
OrtStatus* UpdateCANNProviderOptions(OrtCANNProviderOptions* options, const char* const* keys,
                                     const char* const* values, size_t count) noexcept {
  return update_texts(options, keys, values, count);
}
OrtStatus* GetCANNProviderOptionsAsString(const OrtCANNProviderOptions* options, OrtAllocator* allocator,
                                          char** out) noexcept {
  return read_texts(options, allocator, out);
}
void ReleaseCANNProviderOptions(OrtCANNProviderOptions* options) noexcept {
  release_handle(options, "ReleaseCANNProviderOptions");
}

OrtStatus* CreateDnnlProviderOptions(OrtDnnlProviderOptions** out) noexcept {
  return create_texts(out);
}
OrtStatus* UpdateDnnlProviderOptions(OrtDnnlProviderOptions* options, const char* const* keys,
                                     const char* const* values, size_t count) noexcept {
  return update_texts(options, keys, values, count);
}
OrtStatus* GetDnnlProviderOptionsAsString(const OrtDnnlProviderOptions* options, OrtAllocator* allocator,
                                          char** out) noexcept {
  return read_texts(options, allocator, out);
}
void ReleaseDnnlProviderOptions(OrtDnnlProviderOptions* options) noexcept {
  release_handle(options, "ReleaseDnnlProviderOptions");
}

} // namespace troupe::ort
