#include "loader/npz.hpp"

#include "base/checked.hpp"
#include "base/limits.hpp"
#include "loader/npy.hpp"

#include <zip.h>

#include <algorithm>
#include <memory>

namespace troupe {
namespace {

using bytes = std::span<const std::byte>;

[[noreturn]] void malformed(std::string_view what) {
  fail(errc::invalid_input, "not a valid .npz archive: {}", what);
}

struct closer {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using archive_ptr = std::unique_ptr<zip_t, closer>;

/// libzip 1.7 compares the whole directory with each record of its end that the last 64 KiB may hold.
void check_ends(bytes archive) {
  constexpr std::string_view mark = "PK\5\6";
  constexpr size_t end_bytes = 22 + 65'535, max_ends = 16; // a record with the longest comment
  const bytes last = archive.last(std::min(archive.size(), end_bytes));
  const std::string_view text(reinterpret_cast<const char*>(last.data()), last.size());
  size_t ends = 0;
  for (size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + mark.size()))
    if (++ends > max_ends)
      malformed("its directory ends more than once");
}

archive_ptr open(bytes archive) {
  if (archive.empty()) // libzip takes it for one without entries
    malformed("it is too short");
  check_ends(archive);
  zip_error_t why;
  zip_error_init(&why);
  zip_source_t* source = zip_source_buffer_create(archive.data(), archive.size(), 0, &why);
  if (!source)
    throw std::bad_alloc();
  archive_ptr opened(zip_open_from_source(source, ZIP_RDONLY, &why));
  if (opened)
    return opened;
  zip_source_free(source);
  const std::string text = zip_error_strerror(&why);
  zip_error_fini(&why);
  malformed(text);
}

tensor read_array(zip_t* archive, const zip_stat_t& e) {
  if (e.encryption_method != ZIP_EM_NONE)
    malformed("encrypted arrays are not supported");
  if (e.comp_method != ZIP_CM_STORE && e.comp_method != ZIP_CM_DEFLATE)
    malformed("an array's compression method is not supported");
  const std::unique_ptr<zip_file_t, closer> file(zip_fopen_index(archive, e.index, 0));
  const auto fill = [&](std::span<std::byte> out) {
    while (!out.empty()) {
      const zip_int64_t count = file ? zip_fread(file.get(), out.data(), out.size()) : -1;
      if (count <= 0)
        malformed("an array's bytes are damaged or too short");
      out = out.subspan(static_cast<size_t>(count));
    }
  };
  // The array's own header says how much there is to read, before memory for it is taken.
  std::vector<std::byte> start(std::min<uint64_t>(e.size, max_npy_header_bytes));
  fill(start);
  constexpr uint64_t best_ratio = 1040; // of deflate, a little over 1032
  if (static_cast<uint64_t>(parse_npy_header(start).total_bytes()) != e.size || e.size / best_ratio > e.comp_size)
    malformed("an array's size is not what its header needs");
  tensor array = read_npy(start, static_cast<int64_t>(e.size), fill);
  std::byte more;
  if (zip_fread(file.get(), &more, 1) != 0) // libzip compares the checksum where the entry ends
    malformed("an array's bytes are damaged");
  return array;
}

/// Reads the directory. Its sizes are added up before anything is inflated.
std::vector<zip_stat_t> read_directory(zip_t* archive, uint64_t archive_bytes) {
  const int64_t allowed = checked_add(limits::unpacked_bytes,
                                      checked_mul(static_cast<int64_t>(archive_bytes), limits::unpacked_bytes_a_byte));
  std::vector<zip_stat_t> entries(static_cast<size_t>(zip_get_num_entries(archive, 0)));
  uint64_t packed = 0, unpacked = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    zip_stat_t& e = entries[i];
    constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
    if (zip_stat_index(archive, i, ZIP_FL_ENC_RAW, &e) != 0 || (e.valid & needed) != needed)
      malformed("a directory entry is missing");
    if (e.comp_size > archive_bytes - packed)
      malformed("its arrays overlap");
    packed += e.comp_size;
    if (e.size > static_cast<uint64_t>(allowed) - unpacked)
      malformed("its arrays are too large for an archive of this size; store them uncompressed, or as .npy files");
    unpacked += e.size;
  }
  return entries;
}

} // namespace

std::map<std::string, tensor> parse_npz(bytes archive) {
  std::map<std::string, tensor> arrays;
  const archive_ptr opened = open(archive);
  for (const zip_stat_t& e : read_directory(opened.get(), archive.size())) {
    constexpr std::string_view suffix = ".npy";
    std::string name = e.name;
    if (!name.ends_with(suffix))
      malformed("it holds something that is not a .npy array");
    name.resize(name.size() - suffix.size());
    try {
      if (!arrays.emplace(name, read_array(opened.get(), e)).second)
        malformed("two arrays have the same name");
    } catch (const error& problem) {
      fail(problem.code(), "array '{}': {}", name, problem.what());
    }
  }
  return arrays;
}

} // namespace troupe
