// Lists for messages.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace troupe {

/// Returns the first three texts, and how many there are more: "a, b, c and 4 more".
inline std::string first_of(const std::vector<std::string>& texts) {
  constexpr size_t most = 3;
  std::string list;
  for (size_t i = 0; i < texts.size() && i < most; ++i)
    list += (i > 0 ? ", " : "") + texts[i];
  return texts.size() > most ? fmt::format("{} and {} more", list, texts.size() - most) : list;
}

} // namespace troupe
