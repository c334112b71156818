// The leaves of weights (graph/weight.hpp) that a worker has, by content hash: those in use, which all sessions share,
// and those that its disk keeps between processes (weight_folder.hpp).
//
// Content is checked against its hash when it is written, and when a file is first read in a process; a damaged file is
// removed and counts as missing. What the disk has no room for is kept in memory, for as long as it is used.
// Thread-safe.
#pragma once

#include "base/weak_table.hpp"
#include "remote/weight_folder.hpp"
#include "troupe/tensor.hpp"

namespace troupe::remote {

/// A leaf that is on its way; it is forgotten unless it is committed.
class weight_writer {
public:
  /// What is to be filled; backed by a file, if the disk has room, and not to be written once the leaf is committed.
  tensor& destination() { return destination_; }

private:
  friend class weight_store;
  hash128 content_;
  tensor destination_;
  std::shared_ptr<part_file> file_; // null if it is in memory only
};

struct weight_store_options {
  /// Empty: weights are kept in memory only.
  std::filesystem::path folder;
  /// How much the folder may hold.
  int64_t max_bytes = int64_t{64} << 30;
};

/// Returns where a user's weights are kept unless said otherwise; empty if the user has no cache folder.
std::filesystem::path default_weight_folder();

class weight_store {
public:
  explicit weight_store(weight_store_options how);

  /// Returns why no weights are kept on disk, for a log; empty if they are.
  const std::string& problem() const { return folder_.problem(); }

  /// Returns a leaf; undefined if it is neither in use nor on the disk.
  tensor find(const hash128& content, dtype type, const shape& dims);

  /// Makes a place for a leaf's bytes; strings are for `share`. Throws `errc::out_of_memory` if there is neither disk
  /// nor memory.
  weight_writer begin(const hash128& content, dtype type, shape dims);
  /// Takes a leaf that has been filled and returns it as it is to be used. Throws `errc::invalid_input` if it does not
  /// have the content that was announced.
  tensor commit(const weight_writer& written);

  /// Lets others find a leaf while it is in use, wherever it comes from; returns the one that they find. Throws as
  /// `commit`.
  tensor share(const hash128& content, const tensor& leaf);

private:
  tensor in_use(const hash128& content) const;
  tensor note(const hash128& content, const tensor& leaf);
  bool is_verified(const hash128& content, const mapped_file& file) const;
  void set_verified(const hash128& content, const mapped_file& file);

  weight_folder folder_;
  mutable std::mutex mutex_;
  weak_table<hash128, const tensor> in_use_;
  std::unordered_map<hash128, std::string> verified_; // the identity of the file that was checked
};

} // namespace troupe::remote
