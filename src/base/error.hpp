// Helpers that throw the one exception type (troupe/error.hpp) of src/ and vulkan/. Errors cross the actor boundary as
// values (see actors/messages.hpp).
#pragma once

#include "troupe/error.hpp"

#include <fmt/core.h>

#include <string>

namespace troupe {

/// Throws an `error` with a formatted message.
template <class... Args>
[[noreturn]] void fail(errc code, fmt::format_string<Args...> format, Args&&... args) {
  throw error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws `errc::internal` unless `condition` holds: for programmer errors, never for bad input.
inline void expects(bool condition, const char* what) {
  if (!condition)
    throw error(errc::internal, std::string("internal error: ") + what);
}

} // namespace troupe
