// The functions that the library exports by name, each for every version of ONNX Runtime whose programs it takes.
#pragma once

#include "compat/onnxruntime/api.hpp"

#define TROUPE_ORT_DOOR __attribute__((visibility("default")))

extern "C" {

/// What the second library, whose name has no number, calls.
TROUPE_ORT_DOOR const OrtApiBase* troupe_onnxruntime_base() noexcept;

// Older programs name a provider by a function of its own. All succeed: troupe's own devices run the model.
TROUPE_ORT_DOOR OrtStatus* OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions* options,
                                                                        int use_arena) noexcept;
TROUPE_ORT_DOOR OrtStatus* OrtSessionOptionsAppendExecutionProvider_CUDA(OrtSessionOptions* options, int id) noexcept;
TROUPE_ORT_DOOR OrtStatus* OrtSessionOptionsAppendExecutionProvider_ROCM(OrtSessionOptions* options, int id) noexcept;
TROUPE_ORT_DOOR OrtStatus* OrtSessionOptionsAppendExecutionProvider_MIGraphX(OrtSessionOptions* options,
                                                                             int id) noexcept;
TROUPE_ORT_DOOR OrtStatus* OrtSessionOptionsAppendExecutionProvider_Dnnl(OrtSessionOptions* options,
                                                                         int arena) noexcept;
TROUPE_ORT_DOOR OrtStatus* OrtSessionOptionsAppendExecutionProvider_Tensorrt(OrtSessionOptions* options,
                                                                             int id) noexcept;
}
