#include "compat/onnxruntime/door.hpp"

#include "compat/onnxruntime/log.hpp"
#include "compat/onnxruntime/reasons.hpp"
#include "compat/onnxruntime/status.hpp"

namespace {

OrtStatus* other_provider(OrtSessionOptions* options, const char* name) noexcept {
  return troupe::ort::guarded([&] {
    troupe::ort::given(options, "the session options");
    troupe::ort::note(ORT_LOGGING_LEVEL_WARNING,
                      std::string("provider '") + name + "': " + troupe::ort::reasons::other_providers);
  });
}

} // namespace

TROUPE_ORT_DOOR const OrtApiBase* OrtGetApiBase() noexcept {
  return troupe_onnxruntime_base();
}

OrtStatus* OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions* options, int /*use_arena*/) noexcept {
  return troupe::ort::guarded([&] { troupe::ort::given(options, "the session options"); });
}

OrtStatus* OrtSessionOptionsAppendExecutionProvider_CUDA(OrtSessionOptions* options, int /*id*/) noexcept {
  return other_provider(options, "CUDA");
}

OrtStatus* OrtSessionOptionsAppendExecutionProvider_ROCM(OrtSessionOptions* options, int /*id*/) noexcept {
  return other_provider(options, "ROCM");
}

OrtStatus* OrtSessionOptionsAppendExecutionProvider_MIGraphX(OrtSessionOptions* options, int /*id*/) noexcept {
  return other_provider(options, "MIGraphX");
}

OrtStatus* OrtSessionOptionsAppendExecutionProvider_Dnnl(OrtSessionOptions* options, int /*arena*/) noexcept {
  return other_provider(options, "Dnnl");
}

OrtStatus* OrtSessionOptionsAppendExecutionProvider_Tensorrt(OrtSessionOptions* options, int /*id*/) noexcept {
  return other_provider(options, "Tensorrt");
}

// The same for programs that ask for the version that they were linked to: functions of their own, since the names that
// an assembler gives a symbol replace the one that it has.
extern "C" TROUPE_ORT_DOOR const OrtApiBase* troupe_versioned_base() noexcept {
  return troupe_onnxruntime_base();
}
#include "versions.inc"

extern "C" {

TROUPE_ORT_DOOR OrtStatus* troupe_versioned_CPU(OrtSessionOptions* options, int value) noexcept {
  return OrtSessionOptionsAppendExecutionProvider_CPU(options, value);
}

TROUPE_ORT_DOOR OrtStatus* troupe_versioned_CUDA(OrtSessionOptions* options, int value) noexcept {
  return OrtSessionOptionsAppendExecutionProvider_CUDA(options, value);
}

TROUPE_ORT_DOOR OrtStatus* troupe_versioned_ROCM(OrtSessionOptions* options, int value) noexcept {
  return OrtSessionOptionsAppendExecutionProvider_ROCM(options, value);
}

TROUPE_ORT_DOOR OrtStatus* troupe_versioned_MIGraphX(OrtSessionOptions* options, int value) noexcept {
  return OrtSessionOptionsAppendExecutionProvider_MIGraphX(options, value);
}

TROUPE_ORT_DOOR OrtStatus* troupe_versioned_Dnnl(OrtSessionOptions* options, int value) noexcept {
  return OrtSessionOptionsAppendExecutionProvider_Dnnl(options, value);
}

TROUPE_ORT_DOOR OrtStatus* troupe_versioned_Tensorrt(OrtSessionOptions* options, int value) noexcept {
  return OrtSessionOptionsAppendExecutionProvider_Tensorrt(options, value);
}

} // extern "C"
#include "provider_versions.inc"
