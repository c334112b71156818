// Finds out what kind of file a user took for a model or a tensor.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace troupe {

/// Throws `errc::invalid_model`, saying what the bytes are and what to do, if they begin as another well-known kind of
/// file does (a Git LFS pointer, a web page, an archive, another engine's model). `wanted` says what they should be:
/// "an ONNX model".
void refuse_other_kinds(std::span<const std::byte> bytes, const std::string& wanted);

/// Returns what `read()` makes of the bytes; where it throws, says what they are if that is known.
template <class F>
auto read_as(const std::string& wanted, std::span<const std::byte> bytes, F read) {
  try {
    return read();
  } catch (const error&) {
    refuse_other_kinds(bytes, wanted);
    throw;
  }
}

} // namespace troupe
