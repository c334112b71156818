#include "loader/mapped_file.hpp"

#include "base/error.hpp"
#include "base/mapped_memory.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

/// A file descriptor that closes itself.
struct descriptor {
  int number;
  ~descriptor() {
    if (number >= 0)
      ::close(number);
  }
};

std::string reason() {
  return std::strerror(errno);
}

std::string identity_of(const struct stat& s) {
  return fmt::format("{}:{}:{}:{}.{}", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

} // namespace

std::shared_ptr<const mapped_file> mapped_file::open(const std::filesystem::path& file) {
  // O_NONBLOCK: opening a pipe without a writer must not wait.
  const descriptor fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (fd.number < 0)
    fail(errc::io, "cannot open {}: {}", file.string(), reason());
  struct stat s {};
  if (::fstat(fd.number, &s) != 0)
    fail(errc::io, "cannot inspect {}: {}", file.string(), reason());
  if (!S_ISREG(s.st_mode))
    fail(errc::io, "{} is {}, not a regular file", file.string(),
         S_ISDIR(s.st_mode) ? "a directory" : "a special file");
  std::shared_ptr<mapped_file> mapped(new mapped_file);
  mapped->identity_ = identity_of(s);
  if (s.st_size == 0)
    return mapped;
  void* data = ::mmap(nullptr, static_cast<size_t>(s.st_size), PROT_READ, MAP_PRIVATE, fd.number, 0);
  if (data == MAP_FAILED)
    fail(errc::io, "cannot map {} ({} bytes): {}", file.string(), s.st_size, reason());
  mapped->data_ = static_cast<const std::byte*>(data);
  mapped->size_ = static_cast<size_t>(s.st_size);
  note_mapped_file(data, mapped->size_);
  return mapped;
}

mapped_file::~mapped_file() {
  if (!data_)
    return;
  forget_mapped_file(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

} // namespace troupe
