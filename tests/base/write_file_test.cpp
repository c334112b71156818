#include "base/write_file.hpp"

#include "base/error.hpp"
#include "base/text_file.hpp"
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

#include <ostream>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace fs = std::filesystem;

namespace {

std::string content_of(const fs::path& file) {
  return read_text(file, 1 << 20, file.string());
}

size_t files_in(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

} // namespace

TEST_CASE("a file is written whole, or stays what it was", "[base]") {
  const scratch_folder folder;
  const fs::path file = folder.path() / "f";
  write_file(file, "old");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  CHECK_THROWS_WITH(write_file(file,
                               [](std::ostream& out) {
                                 out << "half of the ne";
                                 throw std::runtime_error("no more");
                               }),
                    "no more");
  CHECK(content_of(file) == "old");
  CHECK_THAT(thrown_by([&] { write_file(file, [](std::ostream& out) { out.setstate(std::ios::badbit); }); }).what(),
             Contains("f' cannot be written: "));
  CHECK(content_of(file) == "old");
  write_file(file, "new");
  CHECK(content_of(file) == "new");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a link stays a link, and a device is written as it is", "[base]") {
  const scratch_folder folder;
  write_file(folder.path() / "f", "old");
  fs::create_symlink("f", folder.path() / "link");
  write_file(folder.path() / "link", "new");
  CHECK(fs::is_symlink(folder.path() / "link"));
  CHECK(content_of(folder.path() / "f") == "new");
  CHECK_THAT(thrown_by([] { write_file("/dev/full", "x"); }).what(), Contains("No space left on device"));
  CHECK(fs::is_character_file("/dev/full"));
  CHECK_THAT(thrown_by([&] { write_file(folder.path() / "missing" / "f", "x"); }).what(),
             Contains("No such file or directory"));
}
