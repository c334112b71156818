#include "base/write_file.hpp"

#include "base/error.hpp"
#include "base/printable.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <unistd.h>

namespace troupe {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_to_write(const fs::path& file, int why) {
  fail(errc::io, "'{}' cannot be written: {}", printable(file.string()), std::strerror(why));
}

/// Returns 0, or the error's number.
int write_at(const fs::path& place, const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream out(place, std::ios::binary | std::ios::trunc);
  if (out)
    write(out);
  out.close();
  return out ? 0 : errno != 0 ? errno : EIO;
}

void write_as_it_is(const fs::path& file, const std::function<void(std::ostream&)>& write) {
  if (const int why = write_at(file, write); why != 0)
    fail_to_write(file, why);
}

/// Whether another file can take its place: not that of a pipe or device, nor in a folder that takes no files.
bool can_be_replaced(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  return fs::is_regular_file(file) && access(folder.c_str(), W_OK) == 0;
}

} // namespace

void write_file(const fs::path& file, const std::function<void(std::ostream&)>& write) {
  std::error_code problem;
  const fs::path target = fs::is_symlink(file, problem) ? fs::weakly_canonical(file, problem) : file; // the link stays
  const bool is_there = fs::exists(target, problem);
  if (is_there && !can_be_replaced(target))
    return write_as_it_is(file, write);
  const fs::path temporary = fmt::format("{}.{}", target.string(), getpid());
  int why = 0;
  try {
    why = write_at(temporary, write);
  } catch (...) {
    fs::remove(temporary, problem);
    throw;
  }
  problem.clear();
  if (why == 0 && is_there)
    fs::permissions(temporary, fs::status(target, problem).permissions(), problem);
  if (why == 0 && !problem)
    fs::rename(temporary, target, problem);
  if (why == 0 && !problem)
    return;
  const bool is_mounted = problem == std::errc::device_or_resource_busy; // a file by itself
  why = why != 0 ? why : problem.value();
  fs::remove(temporary, problem);
  if (is_mounted)
    return write_as_it_is(file, write);
  fail_to_write(file, why);
}

void write_file(const fs::path& file, std::string_view content) {
  write_file(file, [&](std::ostream& out) { out.write(content.data(), static_cast<std::streamsize>(content.size())); });
}

} // namespace troupe
