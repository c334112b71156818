#include "loader/external_data.hpp"

#include "base/error.hpp"
#include "loader/proto.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// The path of `location` below the model's folder, without "." and ".."; throws where it is written so that it leaves
/// the folder.
fs::path path_within_folder(const std::string& location) {
  const fs::path relative(location);
  const bool odd = location.empty() || location.find('\0') != std::string::npos;
  if (odd || relative.is_absolute())
    fail(errc::invalid_model, "external data {}: the location must be a path relative to the model",
         in_quotes(location));
  const fs::path normal = relative.lexically_normal();
  if (*normal.begin() == "..")
    fail(errc::invalid_model, "external data {}: the location leaves the model's folder", in_quotes(location));
  return normal;
}

} // namespace

std::shared_ptr<const mapped_file> external_files::open(const std::string& location) {
  if (folder_.empty())
    fail(errc::invalid_model, "external data {}: a model that is not a file has no folder to look in",
         in_quotes(location));
  auto& file = by_location_[location];
  if (file)
    return file;
  const fs::path path = folder_ / path_within_folder(location);
  try {
    file = mapped_file::open(path);
  } catch (const error& e) {
    fail(e.code(), "external data {}: {}", in_quotes(location), e.what());
  }
  auto& known = by_identity_[file->identity()];
  if (known)
    file = known;
  else
    known = file;
  return file;
}

} // namespace troupe
