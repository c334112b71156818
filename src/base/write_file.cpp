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

} // namespace

void write_file(const fs::path& file, const std::function<void(std::ostream&)>& write) {
  std::error_code problem;
  const fs::file_status before = fs::status(file, problem);
  if (fs::exists(before) && !fs::is_regular_file(before)) {
    if (const int why = write_at(file, write); why != 0)
      fail_to_write(file, why);
    return;
  }
  const fs::path target = fs::is_symlink(file, problem) ? fs::weakly_canonical(file, problem) : file; // the link stays
  const fs::path temporary = fmt::format("{}.{}", target.string(), getpid());
  int why = 0;
  try {
    why = write_at(temporary, write);
  } catch (...) {
    fs::remove(temporary, problem);
    throw;
  }
  problem.clear();
  if (why == 0 && fs::exists(before))
    fs::permissions(temporary, before.permissions(), problem);
  if (why == 0 && !problem)
    fs::rename(temporary, target, problem);
  if (why == 0 && !problem)
    return;
  why = why != 0 ? why : problem.value();
  fs::remove(temporary, problem);
  fail_to_write(file, why);
}

void write_file(const fs::path& file, std::string_view content) {
  write_file(file, [&](std::ostream& out) { out.write(content.data(), static_cast<std::streamsize>(content.size())); });
}

} // namespace troupe
