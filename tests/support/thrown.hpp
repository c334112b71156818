// Errors as values, so that tests can look at code and message.
#pragma once

#include "base/error.hpp"

namespace troupe::test {

/// Returns what a call throws; `errc::internal` "nothing was thrown" if it throws nothing.
template <class F>
error thrown_by(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e;
  }
  return {errc::internal, "nothing was thrown"};
}

} // namespace troupe::test
