// The weights of the models in a folder, by content hash: a worker that has a model's file need not be sent its
// weights.
//
// Hashing reads everything, so the hashes of each model are kept in an index file, and made again only if no entry
// fits. An entry fits if the model has its size and time of change, and if the files beside it that are not models,
// where its weights may be, have theirs. The index is a hint: what is taken from a model is compared with its hash.
// Models that cannot be loaded have no weights. Thread-safe.
#pragma once

#include "base/hash.hpp"
#include "troupe/tensor.hpp"

#include <filesystem>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace troupe::remote {

class model_folder {
public:
  /// Looks at the .onnx files in `folder`, those in folders inside it included. Without a path, the index is not kept.
  model_folder(std::filesystem::path folder, std::filesystem::path index_file);

  /// Returns those of the wanted leaves that a model has. May take as long as reading the whole folder, the first time.
  std::unordered_map<hash128, tensor> find(std::span<const hash128> wanted);

private:
  /// The hashes of a model's leaves, in the order in which the model is walked.
  using hashes = std::vector<hash128>;
  struct search {
    std::unordered_set<hash128> missing;
    std::unordered_map<hash128, tensor> found;
  };

  void read_index();
  void write_index();
  void refresh();
  void take_known(const std::filesystem::path& model, hash128 fingerprint, search& s);
  void take_unknown(const std::filesystem::path& model, hash128 fingerprint, search& s);

  const std::filesystem::path folder_, index_file_;
  std::mutex mutex_;
  std::map<std::filesystem::path, hash128> fingerprints_; // of the models that are there
  std::unordered_map<hash128, hashes> known_;             // by fingerprint
  bool index_read_ = false, index_changed_ = false;
};

/// Returns where the index of a folder is kept unless said otherwise; empty if the user has no cache folder.
std::filesystem::path default_model_index(const std::filesystem::path& folder);

} // namespace troupe::remote
