// The tables of functions by which programs enter ONNX Runtime's library. START HERE with slots_a.inc: one line for
// each function, in the order of the table, with what this library does with it.
//
//   WORKS(slot, since, result, name, (arguments))         a function of that name in namespace troupe::ort
//   ACCEPTS(slot, since, result, name, (arguments), why)  returns success and has no effect, for the reason
//   REFUSES(slot, since, result, name, (arguments), why)  returns ORT_NOT_IMPLEMENTED with the reason
//
// `since` is the version of the table that has the slot: 14 for those that were there before. The table only grows, so
// the table of 1.30 is that of all versions before.
#pragma once

#include "compat/onnxruntime/api_types.hpp"

namespace troupe::ort {

/// The newest version of the table that is known.
inline constexpr uint32_t newest_version = 30;

} // namespace troupe::ort

extern "C" {

struct OrtApi {
#define WORKS(slot, since, result, name, arguments) result(*name) arguments noexcept;
#define ACCEPTS(slot, since, result, name, arguments, why) WORKS(slot, since, result, name, arguments)
#define REFUSES(slot, since, result, name, arguments, why) WORKS(slot, since, result, name, arguments)
#include "compat/onnxruntime/slots.inc"
#undef WORKS
#undef ACCEPTS
#undef REFUSES
};

#define BEGIN(table) struct table {
#define REFUSES(slot, result, name, arguments, why) result(*name) arguments noexcept;
#define END(table)                                                                                                     \
  }                                                                                                                    \
  ;
#include "compat/onnxruntime/slots_more.inc"
#undef BEGIN
#undef REFUSES
#undef END

struct OrtApiBase {
  /// Returns the table of a version, from 1 to `newest_version`; null for others, which stderr hears of.
  const OrtApi* (*GetApi)(uint32_t version) noexcept;
  /// Returns the version of ONNX Runtime whose table this is, e.g. "1.30.0".
  const char* (*GetVersionString)() noexcept;
};

/// The door: the one function that programs look up by name.
const OrtApiBase* OrtGetApiBase() noexcept;
}
