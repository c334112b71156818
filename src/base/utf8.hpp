// Names come from files and need not be UTF-8; JSON and terminals want it.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Returns `text` with '?' for every byte that does not belong to a well-formed UTF-8 sequence.
std::string to_utf8(std::string_view text);

} // namespace troupe
