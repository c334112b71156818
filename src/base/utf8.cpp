#include "base/utf8.hpp"

namespace troupe {
namespace {

bool in_range(char c, unsigned low, unsigned high) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= low && byte <= high;
}

/// Returns the length of the well-formed sequence that `text` begins with (Unicode, table 3-7); 0 where there is none.
size_t sequence_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80)
    return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length)
    return 0;
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (!in_range(text[1], low, high))
    return 0;
  for (size_t i = 2; i < length; ++i)
    if (!in_range(text[i], 0x80, 0xbf))
      return 0;
  return length;
}

} // namespace

std::string to_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    out += length ? text.substr(0, length) : "?";
    text.remove_prefix(length ? length : 1);
  }
  return out;
}

} // namespace troupe
