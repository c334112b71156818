#include "compat/onnxruntime/run_options.hpp"

#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/status.hpp"

namespace troupe::ort {
namespace {

constexpr char run_options_name[] = "the run options";

} // namespace

OrtStatus* CreateRunOptions(OrtRunOptions** out) noexcept {
  return guarded([&] { given(out, "the place for the options") = make_handle<OrtRunOptions>(); });
}

void ReleaseRunOptions(OrtRunOptions* options) noexcept {
  release_handle(options, "ReleaseRunOptions");
}

OrtStatus* RunOptionsSetRunLogVerbosityLevel(OrtRunOptions* options, int verbosity) noexcept {
  return guarded([&] { given(options, run_options_name).log_verbosity = verbosity; });
}

OrtStatus* RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions* options, int* out) noexcept {
  return guarded([&] { given(out, "the place for the verbosity") = given(options, run_options_name).log_verbosity; });
}

OrtStatus* RunOptionsSetRunLogSeverityLevel(OrtRunOptions* options, int level) noexcept {
  return guarded([&] { given(options, run_options_name).log_level = level; });
}

OrtStatus* RunOptionsGetRunLogSeverityLevel(const OrtRunOptions* options, int* out) noexcept {
  return guarded([&] { given(out, "the place for the level") = given(options, run_options_name).log_level; });
}

OrtStatus* RunOptionsSetRunTag(OrtRunOptions* options, const char* tag) noexcept {
  return guarded([&] {
    OrtRunOptions& o = given(options, run_options_name);
    if (tag)
      o.tag = tag;
  });
}

OrtStatus* RunOptionsGetRunTag(const OrtRunOptions* options, const char** out) noexcept {
  return guarded([&] { given(out, "the place for the tag") = given(options, run_options_name).tag.c_str(); });
}

OrtStatus* RunOptionsSetTerminate(OrtRunOptions* options) noexcept {
  return guarded([&] {
    const std::lock_guard lock(given(options, run_options_name).mutex);
    options->stop.request_stop();
  });
}

/// Runs that were ended stay so; those that begin now are not.
OrtStatus* RunOptionsUnsetTerminate(OrtRunOptions* options) noexcept {
  return guarded([&] {
    const std::lock_guard lock(given(options, run_options_name).mutex);
    options->stop = std::stop_source();
  });
}

OrtStatus* AddRunConfigEntry(OrtRunOptions* options, const char* key, const char* value) noexcept {
  return guarded([&] {
    const std::string name = &given(key, "the key"), text = &given(value, "the value");
    if (name.empty())
      reject("the key of a configuration entry is empty");
    given(options, run_options_name).entries[name] = text;
  });
}

const char* GetRunConfigEntry(const OrtRunOptions* options, const char* key) noexcept {
  if (!options || !key)
    return nullptr;
  const auto found = options->entries.find(key);
  return found == options->entries.end() ? nullptr : found->second.c_str();
}

OrtStatus* RunOptionsEnableProfiling(OrtRunOptions* options, const char* prefix) noexcept {
  return guarded(
      [&] { given(options, run_options_name).profile_prefix = &given(prefix, "the beginning of the file's name"); });
}

OrtStatus* RunOptionsDisableProfiling(OrtRunOptions* options) noexcept {
  return guarded([&] { given(options, run_options_name).profile_prefix.reset(); });
}

} // namespace troupe::ort
