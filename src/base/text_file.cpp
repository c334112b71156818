#include "base/text_file.hpp"

#include <fstream>

namespace troupe {

std::string read_text(const std::filesystem::path& path, int64_t most, std::string_view what, errc too_large) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  for (char piece[65536]; file.read(piece, sizeof piece) || file.gcount() > 0;) {
    text.append(piece, static_cast<size_t>(file.gcount()));
    if (std::ssize(text) > most)
      fail(too_large, "{} is larger than {} bytes", what, most);
  }
  if (!file.eof())
    fail(errc::io, "{} cannot be read", what);
  return text;
}

} // namespace troupe
