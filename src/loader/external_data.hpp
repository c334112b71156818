// Files beside the model that hold its tensors (TensorProto.external_data).
//
// A location is relative to the folder that the model's own path names, and as it is written it must stay inside: a
// model from a stranger must not be able to name other files of this machine. Symbolic links are the user's own, and
// are followed (the Hugging Face cache keeps models and their data as links). A path is opened once: the opened file is
// the one that is checked and read.
#pragma once

#include "loader/mapped_file.hpp"

#include <map>

namespace troupe {

/// The external data files of one model, each mapped once.
class external_files {
public:
  /// `folder` is the model's; empty if the model has none, and every location is refused.
  explicit external_files(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Maps the file at `location`; throws `errc::invalid_model` where it is absolute or leaves the folder, `errc::io`
  /// where it cannot be read.
  std::shared_ptr<const mapped_file> open(const std::string& location);

private:
  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<const mapped_file>> by_location_; // as the model writes it
  std::map<std::string, std::shared_ptr<const mapped_file>> by_identity_;
};

} // namespace troupe
