// The list of the table's functions as data, for functions.txt and for tests.
#pragma once

#include "compat/onnxruntime/api.hpp"

#include <span>

namespace troupe::ort {

/// What this library does with a slot.
enum class slot_state : unsigned char { works, accepted, refused };

struct slot_row {
  const char* table; // "OrtApi", or one beside it
  unsigned slot;
  unsigned since; // the version that first has it
  const char* name;
  slot_state state;
  const char* why; // empty if it works
};

/// Returns all, in the order of the tables.
std::span<const slot_row> all_slots();

} // namespace troupe::ort
