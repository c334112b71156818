#include "base/user_files.hpp"

#include "base/error.hpp"
#include "base/write_file.hpp"

#include <cstdlib>

namespace troupe {

namespace fs = std::filesystem;

fs::path cache_folder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (xdg && *xdg)
    return fs::path(xdg) / "troupe";
  return home && *home ? fs::path(home) / ".cache" / "troupe" : fs::path();
}

bool replace_file(const fs::path& path, std::span<const std::byte> content) {
  std::error_code problem;
  if (path.has_parent_path())
    fs::create_directories(path.parent_path(), problem);
  try {
    write_file(path, std::string_view(reinterpret_cast<const char*>(content.data()), content.size()));
    return true;
  } catch (const error&) {
    return false;
  }
}

} // namespace troupe
