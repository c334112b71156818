#include "base/user_files.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <unistd.h>

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
  const std::string temporary = fmt::format("{}.{}", path.string(), getpid());
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  file.close();
  if (file)
    fs::rename(temporary, path, problem);
  if (file && !problem)
    return true;
  fs::remove(temporary, problem);
  return false;
}

} // namespace troupe
