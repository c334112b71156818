// Text for people. Names come from files: they need not be UTF-8 and may hold control characters, which terminals obey
// and logs are forged with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Returns `text` fit for a terminal, a log and JSON: control characters and what changes the direction of writing
/// (Unicode, categories Cc, Zl, Zp and the bidirectional formatting characters) become e.g. "\n" or "\x1b", byte by
/// byte, and so do bytes that belong to no well-formed UTF-8 sequence. All else stays, so that text which was made
/// printable stays as it is.
std::string printable(std::string_view text);

/// Returns e.g. "740 bytes", "1.5 KiB", "23.4 GiB".
std::string bytes_text(int64_t bytes);

} // namespace troupe
