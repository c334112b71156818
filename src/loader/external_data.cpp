#include "loader/external_data.hpp"

#include "base/error.hpp"
#include "loader/proto.hpp"

#include <algorithm>

namespace troupe {
namespace {

namespace fs = std::filesystem;

bool is_inside(const fs::path& folder, const fs::path& file) {
  const auto [in_folder, in_file] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return in_folder == folder.end() && in_file != file.end();
}

/// The real path of `location`; throws if it is not inside `folder`.
fs::path resolve_inside(const fs::path& folder, const std::string& location) {
  const fs::path relative(location);
  const bool odd = location.empty() || location.find('\0') != std::string::npos;
  if (odd || relative.is_absolute())
    fail(errc::invalid_model, "external data {}: the location must be a path relative to the model",
         in_quotes(location));
  const fs::path normal = relative.lexically_normal();
  if (*normal.begin() == "..")
    fail(errc::invalid_model, "external data {}: the location leaves the model's folder", in_quotes(location));
  std::error_code problem;
  const fs::path real_folder = fs::canonical(folder.empty() ? "." : folder, problem);
  if (problem)
    fail(errc::io, "cannot resolve the model's folder {}: {}", folder.string(), problem.message());
  const fs::path real = fs::canonical(real_folder / relative, problem);
  if (problem)
    fail(errc::io, "external data {}: {}", in_quotes(location), problem.message());
  if (!is_inside(real_folder, real))
    fail(errc::invalid_model, "external data {}: the location leaves the model's folder through a symbolic link",
         in_quotes(location));
  return real;
}

} // namespace

std::shared_ptr<const mapped_file> external_files::open(const std::string& location) {
  if (folder_.empty())
    fail(errc::invalid_model, "external data {}: a model that is not a file has no folder to look in",
         in_quotes(location));
  auto& file = by_location_[location];
  if (file)
    return file;
  const fs::path real = resolve_inside(folder_, location);
  auto& opened = by_path_[real];
  if (!opened)
    opened = mapped_file::open(real);
  return file = opened;
}

} // namespace troupe
