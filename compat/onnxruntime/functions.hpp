// The functions that this library has for the slots of OrtApi (api.hpp), one for each. Those that work are written in
// the file of their room; the others are made from their line of the list, in table.cpp.
#pragma once

#include "compat/onnxruntime/api.hpp"

namespace troupe::ort {

#define WORKS(slot, since, result, name, arguments) result name arguments noexcept;
#define ACCEPTS(slot, since, result, name, arguments, why) WORKS(slot, since, result, name, arguments)
#define REFUSES(slot, since, result, name, arguments, why) WORKS(slot, since, result, name, arguments)
#include "compat/onnxruntime/slots.inc"
#undef WORKS
#undef ACCEPTS
#undef REFUSES

} // namespace troupe::ort
