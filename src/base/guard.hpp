// Public functions throw nothing but `troupe::error`: lack of memory becomes one, too.
#pragma once

#include "base/error.hpp"

#include <new>

namespace troupe {

/// Runs `work`; what it throws says `where`, unless that is empty, and is an `error`.
template <class Work>
decltype(auto) guarded(std::string_view where, Work&& work) {
  const std::string prefix = where.empty() ? std::string() : std::string(where) + ": ";
  const auto out_of_memory = [&]() -> decltype(work()) {
    fail(errc::out_of_memory, "{}the host has not enough memory; use a smaller model or fewer at once", prefix);
  };
  try {
    return work();
  } catch (const error& e) {
    if (prefix.empty())
      throw;
    fail(e.code(), "{}{}", prefix, e.what());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) { // more than a container can count
    return out_of_memory();
  }
}

} // namespace troupe
