#include "compat/onnxruntime/session_options.hpp"

#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/key_values.hpp"
#include "compat/onnxruntime/status.hpp"
#include "compat/onnxruntime/value.hpp"

#include <cstring>

namespace troupe::ort {
namespace {

constexpr char session_options_name[] = "the session options";

/// Sets one member.
template <class T, class Value>
OrtStatus* set_member(OrtSessionOptions* options, T OrtSessionOptions::*member, Value&& value) noexcept {
  return guarded([&] { given(options, session_options_name).*member = std::forward<Value>(value); });
}

void add_initializer(OrtSessionOptions& options, const char* name, const OrtValue* value) {
  const std::string known = &given(name, "the initializer's name");
  if (!options.initializers.emplace(known, tensor_of(value)).second)
    reject("initializer '" + known + "' was given before");
}

} // namespace

OrtStatus* CreateSessionOptions(OrtSessionOptions** out) noexcept {
  return guarded([&] { given(out, "the place for the options") = make_handle<OrtSessionOptions>(); });
}

OrtStatus* CloneSessionOptions(const OrtSessionOptions* options, OrtSessionOptions** out) noexcept {
  return guarded([&] {
    given(out, "the place for the options") = make_handle<OrtSessionOptions>(given(options, session_options_name));
  });
}

void ReleaseSessionOptions(OrtSessionOptions* options) noexcept {
  release_handle(options, "ReleaseSessionOptions");
}

OrtStatus* SetSessionExecutionMode(OrtSessionOptions* options, ExecutionMode mode) noexcept {
  return set_member(options, &OrtSessionOptions::mode, mode);
}

OrtStatus* GetSessionExecutionMode(const OrtSessionOptions* options, ExecutionMode* out) noexcept {
  return guarded([&] { given(out, "the place for the mode") = given(options, session_options_name).mode; });
}

OrtStatus* SetOptimizedModelFilePath(OrtSessionOptions* options, const char* path) noexcept {
  return guarded([&] { given(options, session_options_name).saved_model = &given(path, "the path"); });
}

OrtStatus* EnableProfiling(OrtSessionOptions* options, const char* prefix) noexcept {
  return guarded([&] {
    given(options, session_options_name).profile_prefix = &given(prefix, "the beginning of the file's name");
  });
}

OrtStatus* DisableProfiling(OrtSessionOptions* options) noexcept {
  return set_member(options, &OrtSessionOptions::profile_prefix, std::nullopt);
}

OrtStatus* EnableMemPattern(OrtSessionOptions* options) noexcept {
  return set_member(options, &OrtSessionOptions::memory_pattern, true);
}

OrtStatus* DisableMemPattern(OrtSessionOptions* options) noexcept {
  return set_member(options, &OrtSessionOptions::memory_pattern, false);
}

OrtStatus* GetMemPatternEnabled(const OrtSessionOptions* options, int* out) noexcept {
  return guarded([&] { given(out, "the place for the answer") = given(options, session_options_name).memory_pattern; });
}

OrtStatus* SetSessionLogId(OrtSessionOptions* options, const char* id) noexcept {
  return guarded([&] { given(options, session_options_name).log_id = &given(id, "the id"); });
}

/// Verbosity is a rank among messages of the lowest level, of which troupe has none.
OrtStatus* SetSessionLogVerbosityLevel(OrtSessionOptions* options, int /*verbosity*/) noexcept {
  return guarded([&] { given(options, session_options_name); });
}

OrtStatus* SetSessionLogSeverityLevel(OrtSessionOptions* options, int severity) noexcept {
  return guarded([&] {
    OrtSessionOptions& o = given(options, session_options_name);
    if (severity < ORT_LOGGING_LEVEL_VERBOSE || severity > ORT_LOGGING_LEVEL_FATAL)
      reject("a logging level of " + std::to_string(severity) + "; levels are 0 to 4");
    o.log_level = static_cast<OrtLoggingLevel>(severity);
  });
}

OrtStatus* SetUserLoggingFunction(OrtSessionOptions* options, OrtLoggingFunction function, void* parameter) noexcept {
  return guarded([&] {
    OrtSessionOptions& o = given(options, session_options_name);
    o.log_function = function;
    o.log_parameter = parameter;
  });
}

OrtStatus* SetSessionGraphOptimizationLevel(OrtSessionOptions* options, GraphOptimizationLevel level) noexcept {
  return set_member(options, &OrtSessionOptions::level, level);
}

OrtStatus* SetInterOpNumThreads(OrtSessionOptions* options, int threads) noexcept {
  return guarded([&] { given(options, session_options_name).threads.inter_op = threads; });
}

OrtStatus* SetIntraOpNumThreads(OrtSessionOptions* options, int threads) noexcept {
  return guarded([&] { given(options, session_options_name).threads.intra_op = threads; });
}

/// As in the Python package, it is not promised for every device.
OrtStatus* SetDeterministicCompute(OrtSessionOptions* options, bool value) noexcept {
  if (value)
    return refusal("SetDeterministicCompute", "equal bits are not promised for every device; troupe.kernels = now "
                                              "makes equal runs on one device equal");
  return guarded([&] { given(options, session_options_name); });
}

OrtStatus* SessionOptionsSetLoadCancellationFlag(OrtSessionOptions* options, bool cancel) noexcept {
  return set_member(options, &OrtSessionOptions::cancel_load, cancel);
}

OrtStatus* AddFreeDimensionOverrideByName(OrtSessionOptions* options, const char* name, int64_t value) noexcept {
  return guarded([&] { given(options, session_options_name).dims[&given(name, "the dim's name")] = value; });
}

OrtStatus* AddSessionConfigEntry(OrtSessionOptions* options, const char* key, const char* value) noexcept {
  return guarded([&] {
    const std::string name = &given(key, "the key"), text = &given(value, "the value");
    if (name.empty())
      reject("the key of a configuration entry is empty");
    check_entry(name, text);
    given(options, session_options_name).entries[name] = text;
  });
}

OrtStatus* HasSessionConfigEntry(const OrtSessionOptions* options, const char* key, int* out) noexcept {
  return guarded([&] {
    given(out, "the place for the answer") =
        given(options, session_options_name).entries.contains(&given(key, "the key"));
  });
}

/// With no place for the text, or too little, `size` says how much it takes, the end included.
OrtStatus* GetSessionConfigEntry(const OrtSessionOptions* options, const char* key, char* text, size_t* size) noexcept {
  return guarded([&] {
    const auto& entries = given(options, session_options_name).entries;
    const auto found = entries.find(&given(key, "the key"));
    if (found == entries.end())
      reject("there is no configuration entry '" + std::string(key) + "'");
    const size_t room = given(size, "the place for the size"), needed = found->second.size() + 1;
    *size = needed;
    if (text && room < needed)
      reject("room for " + std::to_string(room) + " characters of " + std::to_string(needed));
    if (text)
      std::memcpy(text, found->second.c_str(), needed);
  });
}

OrtStatus* GetSessionOptionsConfigEntries(const OrtSessionOptions* options, OrtKeyValuePairs** out) noexcept {
  return guarded(
      [&] { given(out, "the place for the entries") = make_pairs(given(options, session_options_name).entries); });
}

/// Clients share such values between models, of which each has some.
OrtStatus* AddInitializer(OrtSessionOptions* options, const char* name, const OrtValue* value) noexcept {
  return guarded([&] {
    add_initializer(given(options, session_options_name), name, value);
    options->spare_initializers.insert(name);
  });
}

OrtStatus* AddExternalInitializers(OrtSessionOptions* options, const char* const* names, const OrtValue* const* values,
                                   size_t count) noexcept {
  return guarded([&] {
    for (size_t i = 0; i < count; ++i)
      add_initializer(given(options, session_options_name), (&given(names, "the names"))[i],
                      (&given(values, "the values"))[i]);
  });
}

OrtStatus* AddExternalInitializersFromFilesInMemory(OrtSessionOptions* options, const char* const* names,
                                                    char* const* bytes, const size_t* lengths, size_t count) noexcept {
  return guarded([&] {
    OrtSessionOptions& o = given(options, session_options_name);
    for (size_t i = 0; i < count; ++i) {
      const char* data = (&given(bytes, "the files' bytes"))[i];
      o.files[&given((&given(names, "the files' names"))[i], "a file's name")] =
          std::as_bytes(std::span(data, (&given(lengths, "the files' lengths"))[i]));
    }
  });
}

} // namespace troupe::ort
