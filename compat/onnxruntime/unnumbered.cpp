// The library whose name has no number, for programs that were linked to libonnxruntime.so: it is the door alone, into
// the same library, of which a process so has one, whichever of the two it asks for.
#include "compat/onnxruntime/door.hpp"

TROUPE_ORT_DOOR const OrtApiBase* OrtGetApiBase() noexcept {
  return troupe_onnxruntime_base();
}

// The same for programs that ask for the version that they were linked to: a function of its own, since the names that
// an assembler gives a symbol replace the one that it has.
extern "C" TROUPE_ORT_DOOR const OrtApiBase* troupe_versioned_base() noexcept {
  return troupe_onnxruntime_base();
}
#include "versions.inc"
