#include "remote/weight_folder.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace troupe::remote {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view part_suffix = ".part";

/// Makes a folder that is only this user's; returns what is wrong with it, or nothing.
std::string claim(const fs::path& folder) {
  if (folder.empty())
    return "there is no folder for them";
  std::error_code problem;
  if (folder.has_parent_path())
    fs::create_directories(folder.parent_path(), problem);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fmt::format("cannot make {}: {}", folder.string(), std::strerror(errno));
  struct stat s {};
  if (::stat(folder.c_str(), &s) != 0 || !S_ISDIR(s.st_mode))
    return fmt::format("{} is not a folder", folder.string());
  if (s.st_uid != ::geteuid())
    return fmt::format("{} is another user's", folder.string());
  if ((s.st_mode & 077) != 0 && ::chmod(folder.c_str(), 0700) != 0)
    return fmt::format("others may use {}, which cannot be changed: {}", folder.string(), std::strerror(errno));
  return "";
}

/// Whether no process writes a part any more. What cannot be opened is gone, or its writer's.
bool is_remainder(const fs::path& part) {
  const int descriptor = ::open(part.c_str(), O_RDONLY | O_CLOEXEC);
  const bool left = descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  if (descriptor >= 0)
    ::close(descriptor);
  return left;
}

struct listed_file {
  fs::path path;
  int64_t bytes = 0;
  struct timespec used {};
};

bool used_before(const listed_file& a, const listed_file& b) {
  return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
}

/// The files of a folder; remainders of writers that have died are removed instead.
std::vector<listed_file> list_files(const fs::path& folder) {
  std::vector<listed_file> files;
  std::error_code problem;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem)) {
    struct stat s {};
    if (::lstat(at->path().c_str(), &s) != 0 || !S_ISREG(s.st_mode))
      continue;
    if (at->path().extension() == part_suffix && is_remainder(at->path()))
      ::unlink(at->path().c_str());
    else
      files.push_back({at->path(), s.st_size, s.st_atim});
  }
  return files;
}

} // namespace

std::shared_ptr<part_file> part_file::make(const fs::path& beside, int64_t bytes) {
  std::shared_ptr<part_file> part(new part_file);
  std::string name = beside.string() + ".XXXXXX" + std::string(part_suffix);
  part->descriptor_ = ::mkostemps(name.data(), static_cast<int>(part_suffix.size()), O_CLOEXEC); // 0600
  if (part->descriptor_ < 0)
    return nullptr;
  part->path_ = name;
  // Blocks are taken now: a disk that is full when a page is written would end the process.
  if (::flock(part->descriptor_, LOCK_EX) != 0 || ::posix_fallocate(part->descriptor_, 0, bytes) != 0)
    return nullptr;
  void* data = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, part->descriptor_, 0);
  if (data == MAP_FAILED)
    return nullptr;
  part->data_ = data;
  part->size_ = static_cast<size_t>(bytes);
  return part;
}

part_file::~part_file() {
  if (data_)
    ::munmap(data_, size_);
  if (!path_.empty())
    ::unlink(path_.c_str());
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

bool part_file::rename(const fs::path& to) {
  if (::rename(path_.c_str(), to.c_str()) != 0)
    return false;
  path_.clear();
  return true;
}

weight_folder::weight_folder(fs::path folder, int64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes), problem_(claim(folder_)) {}

std::shared_ptr<const mapped_file> weight_folder::open(const hash128& content) const {
  const fs::path path = path_of(content);
  const struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  if (!problem_.empty() || ::utimensat(AT_FDCWD, path.c_str(), now, 0) != 0)
    return nullptr;
  try {
    return mapped_file::open(path);
  } catch (const error&) { // gone meanwhile, or unreadable
    return nullptr;
  }
}

void weight_folder::remove(const hash128& content) const {
  ::unlink(path_of(content).c_str());
}

std::shared_ptr<part_file> weight_folder::begin(const hash128& content, int64_t bytes) {
  return problem_.empty() && make_room(bytes) ? part_file::make(path_of(content), bytes) : nullptr;
}

/// Removes what was used the longest ago; returns whether `bytes` fit. Other processes add files too, so the
/// folder is looked at again now and then.
bool weight_folder::make_room(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > max_bytes_)
    return false;
  if (!counted_ || bytes > max_bytes_ - *counted_ - added_ || added_ > max_bytes_ / 16) {
    std::vector<listed_file> files = list_files(folder_);
    int64_t total = 0;
    for (const listed_file& f : files)
      total += f.bytes;
    std::sort(files.begin(), files.end(), used_before);
    for (const listed_file& f : files)
      if (total > max_bytes_ - bytes && f.path.extension() != part_suffix && ::unlink(f.path.c_str()) == 0)
        total -= f.bytes;
    counted_ = total;
    added_ = 0;
  }
  if (bytes > max_bytes_ - *counted_ - added_) // others write so much at this moment
    return false;
  added_ += bytes;
  return true;
}

} // namespace troupe::remote
