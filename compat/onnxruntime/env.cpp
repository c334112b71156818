#include "compat/onnxruntime/env.hpp"

#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/status.hpp"

#include <array>
#include <cstdio>
#include <set>

namespace troupe::ort {
namespace {

constexpr auto level_names = std::to_array<const char*>({"V", "I", "W", "E", "F"});

/// The sink of the environment that was made last, and the texts that were noted. Never destroyed: threads of the
/// engine may note something while the process ends.
struct notes {
  std::mutex mutex;
  std::weak_ptr<log_sink> sink;
  std::set<std::string> said;
};

notes& all_notes() {
  static auto& all = *new notes;
  return all;
}

OrtLoggingLevel level_of(int severity) {
  if (severity < ORT_LOGGING_LEVEL_VERBOSE || severity > ORT_LOGGING_LEVEL_FATAL)
    reject("a logging level of " + std::to_string(severity) + "; levels are 0 to 4");
  return static_cast<OrtLoggingLevel>(severity);
}

void make_env(OrtLoggingFunction function, void* parameter, int severity, const char* id,
              const OrtThreadingOptions* threads, OrtEnv** out) {
  OrtEnv*& made = given(out, "the place for the environment");
  auto sink = std::make_shared<log_sink>(function, parameter, id ? id : "", level_of(severity));
  {
    const std::lock_guard lock(all_notes().mutex);
    all_notes().sink = sink;
  }
  made = make_handle<OrtEnv>(std::move(sink), threads ? threads->threads : thread_counts{});
}

} // namespace

void log_sink::write(OrtLoggingLevel severity, const std::string& message) const noexcept {
  if (severity < level.load())
    return;
  if (!function) {
    std::fprintf(stderr, "[%s:troupe:%s] %s\n", level_names[severity], id.c_str(), message.c_str());
    return;
  }
  try {
    function(parameter, severity, "troupe", id.c_str(), "troupe", message.c_str());
  } catch (...) { // NOLINT(bugprone-empty-catch): a logger that fails has nowhere to say so
  }
}

void note(OrtLoggingLevel severity, const std::string& message) noexcept {
  try {
    std::shared_ptr<log_sink> sink;
    {
      const std::lock_guard lock(all_notes().mutex);
      if (!all_notes().said.insert(message).second)
        return;
      sink = all_notes().sink.lock();
    }
    (sink ? *sink : log_sink(nullptr, nullptr, "", ORT_LOGGING_LEVEL_WARNING)).write(severity, message);
  } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): the note is lost, the work is not
  }
}

OrtStatus* CreateEnv(OrtLoggingLevel severity, const char* id, OrtEnv** out) noexcept {
  return guarded([&] { make_env(nullptr, nullptr, severity, id, nullptr, out); });
}

OrtStatus* CreateEnvWithCustomLogger(OrtLoggingFunction function, void* parameter, OrtLoggingLevel severity,
                                     const char* id, OrtEnv** out) noexcept {
  return guarded([&] { make_env(function, parameter, severity, id, nullptr, out); });
}

OrtStatus* CreateEnvWithGlobalThreadPools(OrtLoggingLevel severity, const char* id, const OrtThreadingOptions* threads,
                                          OrtEnv** out) noexcept {
  return guarded([&] { make_env(nullptr, nullptr, severity, id, threads, out); });
}

OrtStatus* CreateEnvWithCustomLoggerAndGlobalThreadPools(OrtLoggingFunction function, void* parameter,
                                                         OrtLoggingLevel severity, const char* id,
                                                         const OrtThreadingOptions* threads, OrtEnv** out) noexcept {
  return guarded([&] { make_env(function, parameter, severity, id, threads, out); });
}

OrtStatus* CreateEnvWithOptions(const OrtEnvCreationOptions* options, OrtEnv** out) noexcept {
  return guarded([&] {
    const OrtEnvCreationOptions& o = given(options, "the environment's options");
    make_env(o.custom_logging_function, o.custom_logging_param, o.logging_severity_level, o.log_id, o.threading_options,
             out);
  });
}

void ReleaseEnv(OrtEnv* env) noexcept {
  release_handle(env, "ReleaseEnv");
}

OrtStatus* UpdateEnvWithCustomLogLevel(OrtEnv* env, OrtLoggingLevel severity) noexcept {
  return guarded([&] { given(env, "the environment").sink->level = level_of(severity); });
}

OrtStatus* CreateThreadingOptions(OrtThreadingOptions** out) noexcept {
  return guarded([&] { given(out, "the place for the options") = make_handle<OrtThreadingOptions>(); });
}

OrtStatus* SetGlobalInterOpNumThreads(OrtThreadingOptions* options, int threads) noexcept {
  return guarded([&] { given(options, "the options").threads.inter_op = threads; });
}

OrtStatus* SetGlobalIntraOpNumThreads(OrtThreadingOptions* options, int threads) noexcept {
  return guarded([&] { given(options, "the options").threads.intra_op = threads; });
}

void ReleaseThreadingOptions(OrtThreadingOptions* options) noexcept {
  release_handle(options, "ReleaseThreadingOptions");
}

const char* GetBuildInfoString() noexcept {
  return "troupe " TROUPE_VERSION ", with the C interface of ONNX Runtime 1.14 to 1.30";
}

} // namespace troupe::ort
