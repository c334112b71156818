#include "base/printable.hpp"

#include <fmt/format.h>

namespace troupe {
namespace {

bool in_range(char c, unsigned low, unsigned high) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= low && byte <= high;
}

/// Returns the length of the well-formed sequence that `text` begins with (Unicode, table 3-7); 0 if there is none.
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

/// Returns whether a well-formed sequence only controls what is around it.
bool is_control(std::string_view sequence) {
  if (sequence.size() == 1)
    return static_cast<unsigned char>(sequence[0]) < 0x20 || sequence[0] == 0x7f;
  if (sequence.size() == 2)
    return sequence[0] == '\xc2' && in_range(sequence[1], 0x80, 0x9f); // U+0080 … U+009F
  if (sequence.size() != 3 || sequence[0] != '\xe2')
    return false;
  return (sequence[1] == '\x80' && (in_range(sequence[2], 0xa8, 0xae) || in_range(sequence[2], 0x8e, 0x8f))) ||
         (sequence[1] == '\x81' && in_range(sequence[2], 0xa6, 0xa9)); // U+200E, F, U+2028 … E, U+2066 … 9
}

void append_escaped(std::string& out, std::string_view bytes) {
  for (const char c : bytes)
    switch (c) {
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default: out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
}

} // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const std::string_view next = text.substr(0, length ? length : 1);
    if (length == 0 || is_control(next))
      append_escaped(out, next);
    else
      out += next;
    text.remove_prefix(next.size());
  }
  return out;
}

std::string bytes_text(int64_t bytes) {
  constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024)
    return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
  double number = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; number >= 1024 && unit + 1 < std::size(units); ++unit)
    number /= 1024;
  return fmt::format("{:.1f} {}", number, units[unit]);
}

} // namespace troupe
