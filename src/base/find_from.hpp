// A search for lists that are mostly asked in their own order.
#pragma once

#include <cstddef>

namespace troupe {

/// Returns the index of an element for which `matches` holds, sought from index `from` on and then from the beginning;
/// `all.size()` if there is none. With `from` after the last one found, names that come in the order of `all` take one
/// comparison each.
template <class Range, class Match>
size_t find_from(const Range& all, size_t from, Match matches) {
  const size_t count = all.size();
  for (size_t tried = 0; tried < count; ++tried)
    if (const size_t i = (from + tried) % count; matches(all[i]))
      return i;
  return count;
}

} // namespace troupe
