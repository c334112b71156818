// Weights on disk: one file for each content hash, named by its digits, the bytes and nothing else.
//
// A file is written under another name and renamed when it is whole, and never changed afterwards; so several processes
// may share a folder, and what one of them removes stays readable for those that have it mapped. The least recently
// used files are removed when the folder is over its limit; the time of use is the files' access time, which is set
// here, because the time of change tells whether a file is still the one that was checked (mapped_file::identity).
// Folder 0700, files 0600. Nothing here trusts what it reads: the caller compares hashes. Thread-safe.
#pragma once

#include "base/hash.hpp"
#include "loader/mapped_file.hpp"

#include <mutex>
#include <optional>

namespace troupe::remote {

/// A file that is being written, mapped; it goes away unless it is kept. The lock that it holds tells other processes
/// that it is not a remainder of one that has died.
class part_file {
public:
  /// Null if the folder's disk has no room for `bytes`, at least one.
  static std::shared_ptr<part_file> make(const std::filesystem::path& beside, int64_t bytes);
  ~part_file();
  part_file(const part_file&) = delete;
  part_file& operator=(const part_file&) = delete;

  void* data() const { return data_; }
  const std::filesystem::path& path() const { return path_; }
  /// Gives the file its name; returns whether it has it.
  bool rename(const std::filesystem::path& to);

private:
  part_file() = default;

  int descriptor_ = -1;
  std::filesystem::path path_; // empty after it was renamed
  void* data_ = nullptr;
  size_t size_ = 0;
};

class weight_folder {
public:
  /// Makes the folder, if there is none. An empty path means no folder.
  weight_folder(std::filesystem::path folder, int64_t max_bytes);

  /// Returns why nothing is kept; empty if it is.
  const std::string& problem() const { return problem_; }

  /// Maps a file and notes its use; null if there is none.
  std::shared_ptr<const mapped_file> open(const hash128& content) const;
  void remove(const hash128& content) const;

  /// Makes room and a file for `bytes`, at least one; null if that cannot be.
  std::shared_ptr<part_file> begin(const hash128& content, int64_t bytes);
  /// Gives a file that is whole its place; returns whether it has it.
  bool keep(const hash128& content, part_file& written) const { return written.rename(path_of(content)); }

private:
  std::filesystem::path path_of(const hash128& content) const { return folder_ / to_hex(content); }
  bool make_room(int64_t bytes);

  std::filesystem::path folder_;
  int64_t max_bytes_;
  std::string problem_;
  std::mutex mutex_;
  std::optional<int64_t> counted_; // bytes that were there when the files were last counted
  int64_t added_ = 0;              // since then, by this process
};

} // namespace troupe::remote
