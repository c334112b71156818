#include "compat/onnxruntime/table.hpp"

#include "compat/onnxruntime/door.hpp"
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/log.hpp"
#include "compat/onnxruntime/reasons.hpp"
#include "compat/onnxruntime/status.hpp"

#include <cstdio>

namespace troupe::ort {
namespace {

// A slot is where programs of any version expect it.
#define WORKS(slot, since, result, name, arguments) static_assert(offsetof(OrtApi, name) == (slot) * sizeof(void*));
#define ACCEPTS(slot, since, result, name, arguments, why) WORKS(slot, since, result, name, arguments)
#define REFUSES(slot, since, result, name, arguments, why) WORKS(slot, since, result, name, arguments)
#include "compat/onnxruntime/slots.inc"
#undef WORKS
#undef ACCEPTS
#undef REFUSES

/// Returns what a function of this result returns when it is refused: a status, or nothing, null or zero where it has
/// no way to say why.
template <class Result>
Result refused(const char* name, const char* why) noexcept {
  if constexpr (std::is_same_v<Result, OrtStatus*>)
    return refusal(name, why);
  else
    return Result();
}

/// A hint that has no effect is told once: providers that do not run the model at a level that people read.
OrtStatus* accepted(const char* name, const char* why) noexcept {
  const bool provider = why == static_cast<const char*>(reasons::other_providers);
  return guarded([&] {
    note(provider ? ORT_LOGGING_LEVEL_WARNING : ORT_LOGGING_LEVEL_INFO, std::string(name) + " has no effect: " + why);
  });
}

} // namespace

#define WORKS(slot, since, result, name, arguments)
#define ACCEPTS(slot, since, result, name, arguments, why)                                                             \
  result name arguments noexcept {                                                                                     \
    return accepted(#name, reasons::why);                                                                              \
  }
#define REFUSES(slot, since, result, name, arguments, why)                                                             \
  result name arguments noexcept {                                                                                     \
    return refused<result>(#name, reasons::why);                                                                       \
  }
#include "compat/onnxruntime/slots.inc"
#undef WORKS
#undef ACCEPTS
#undef REFUSES

namespace {

constexpr OrtApi table{
#define WORKS(slot, since, result, name, arguments) name,
#define ACCEPTS(slot, since, result, name, arguments, why) name,
#define REFUSES(slot, since, result, name, arguments, why) name,
#include "compat/onnxruntime/slots.inc"
#undef WORKS
#undef ACCEPTS
#undef REFUSES
};

#define BEGIN(table)                                                                                                   \
  namespace in_##table {                                                                                               \
    using here = ::table;
#define REFUSES(slot, result, name, arguments, why) static_assert(offsetof(here, name) == (slot) * sizeof(void*));
#define END(table) }
#include "compat/onnxruntime/slots_more.inc"
#undef BEGIN
#undef REFUSES
#undef END

#define BEGIN(table) namespace in_##table {
#define REFUSES(slot, result, name, arguments, why)                                                                    \
  result name arguments noexcept {                                                                                     \
    return refused<result>(#name, reasons::why);                                                                       \
  }
#define END(table) }
#include "compat/onnxruntime/slots_more.inc"
#undef BEGIN
#undef REFUSES
#undef END

#define BEGIN(table)                                                                                                   \
  namespace in_##table {                                                                                               \
    constexpr ::table functions {
#define REFUSES(slot, result, name, arguments, why) name,
#define END(table)                                                                                                     \
  }                                                                                                                    \
  ;                                                                                                                    \
  }
#include "compat/onnxruntime/slots_more.inc"
#undef BEGIN
#undef REFUSES
#undef END

constexpr slot_row rows[] = {
#define WORKS(slot, since, result, name, arguments) {"OrtApi", slot, since, #name, slot_state::works, ""},
#define ACCEPTS(slot, since, result, name, arguments, why)                                                             \
  {"OrtApi", slot, since, #name, slot_state::accepted, reasons::why},
#define REFUSES(slot, since, result, name, arguments, why)                                                             \
  {"OrtApi", slot, since, #name, slot_state::refused, reasons::why},
#include "compat/onnxruntime/slots.inc"
#undef WORKS
#undef ACCEPTS
#undef REFUSES
};

const OrtApi* get_api(uint32_t version) noexcept {
  if (version >= 1 && version <= newest_version)
    return &table;
  std::fprintf(stderr, "troupe: version %u of ONNX Runtime's C interface is not known; this library has 1 to %u\n",
               version, newest_version);
  return nullptr;
}

const char* version_string() noexcept {
  return "1.30.0";
}

} // namespace

std::span<const slot_row> all_slots() {
  return rows;
}

const OrtModelEditorApi* GetModelEditorApi() noexcept {
  return &in_OrtModelEditorApi::functions;
}

const OrtCompileApi* GetCompileApi() noexcept {
  return &in_OrtCompileApi::functions;
}

const OrtInteropApi* GetInteropApi() noexcept {
  return &in_OrtInteropApi::functions;
}

} // namespace troupe::ort

const OrtApiBase* troupe_onnxruntime_base() noexcept {
  static const OrtApiBase base{troupe::ort::get_api, troupe::ort::version_string};
  return &base;
}
