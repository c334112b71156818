// A check that inference of several operators makes: an operand that is spread over another's dims.
#pragma once

#include "base/error.hpp"
#include "graph/dim.hpp"

namespace troupe {

/// Throws `errc::invalid_model` if an operand of shape `from` does not broadcast to shape `to`, as far as numbers tell.
inline void require_broadcast(std::span<const dim> from, std::span<const dim> to, std::string_view what) {
  bool fits = from.size() <= to.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    const dim &have = from[from.size() - 1 - i], &want = to[to.size() - 1 - i];
    fits = have.is(1) || !have.is_constant() || !want.is_constant() || have == want;
  }
  if (!fits)
    fail(errc::invalid_model, "{} of shape {} does not broadcast to {}", what, to_string(from), to_string(to));
}

} // namespace troupe
