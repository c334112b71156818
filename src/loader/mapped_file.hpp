// A read-only file in memory, by mmap: pages are read when they are touched, and nothing is copied.
//
// The mapping is private and shared between its users by `shared_ptr`, so tensors can point into it. A file that
// another process truncates while it is mapped cannot be guarded against: touching the lost pages ends the process
// (SIGBUS).
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace troupe {

class mapped_file {
public:
  /// Maps a regular file; empty files give no bytes. Throws `errc::io` naming the file where it is missing, unreadable
  /// or not a regular file (directories, pipes and devices are refused without reading, so nothing blocks).
  static std::shared_ptr<const mapped_file> open(const std::filesystem::path& file);

  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Returns device, inode, size and time of last change: equal texts mean the same content.
  const std::string& identity() const { return identity_; }

private:
  mapped_file() = default;

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::string identity_;
};

} // namespace troupe
