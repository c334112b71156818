#include "base/text_file.hpp"

#include "base/error.hpp"

#include <fstream>

namespace troupe {

std::string read_text(const std::filesystem::path& path, int64_t most, std::string_view what) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0 || size > most)
    fail(errc::io, "{} cannot be read, or is larger than {} bytes", what, most);
  std::string text(static_cast<size_t>(size), '\0');
  file.seekg(0);
  if (!file.read(text.data(), size))
    fail(errc::io, "{} cannot be read", what);
  return text;
}

} // namespace troupe
