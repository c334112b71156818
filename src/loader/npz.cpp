#include "loader/npz.hpp"

#include "base/checked.hpp"
#include "base/limits.hpp"
#include "loader/npy.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace troupe {
namespace {

using bytes = std::span<const std::byte>;

/// Signatures and sizes of the zip format (PKWARE APPNOTE 4.3).
constexpr uint32_t local_signature = 0x04034b50, entry_signature = 0x02014b50, end_signature = 0x06054b50,
                   end64_signature = 0x06064b50, locator64_signature = 0x07064b50;
constexpr size_t local_size = 30, entry_size = 46, end_size = 22, end64_size = 56, locator64_size = 20;
constexpr uint32_t in_zip64 = 0xffffffff;
constexpr uint16_t zip64_extra = 1;

[[noreturn]] void malformed(const char* what) {
  fail(errc::invalid_input, "not a valid .npz archive: {}", what);
}

template <class T>
T number_at(bytes data, uint64_t at) {
  if (at > data.size() || data.size() - at < sizeof(T))
    malformed("it is truncated");
  T value;
  std::memcpy(&value, data.data() + at, sizeof value);
  return value;
}

bytes part(bytes data, uint64_t at, uint64_t size) {
  if (at > data.size() || size > data.size() - at)
    malformed("it is truncated");
  return data.subspan(at, size);
}

struct entry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0, local_at = 0;
};

struct directory {
  uint64_t at = 0, count = 0;
};

directory find_directory(bytes archive) {
  if (archive.size() < end_size)
    malformed("it is too short");
  constexpr size_t longest_comment = 65535;
  const size_t last = archive.size() - end_size;
  for (size_t back = 0; back <= std::min(last, longest_comment); ++back) {
    const size_t at = last - back;
    if (number_at<uint32_t>(archive, at) != end_signature)
      continue;
    directory found{number_at<uint32_t>(archive, at + 16), number_at<uint16_t>(archive, at + 10)};
    if ((found.at != in_zip64 && found.count != 0xffff) || at < locator64_size ||
        number_at<uint32_t>(archive, at - locator64_size) != locator64_signature)
      return found;
    const auto end64 = number_at<uint64_t>(archive, at - locator64_size + 8);
    if (number_at<uint32_t>(part(archive, end64, end64_size), 0) != end64_signature)
      malformed("the zip64 end record is missing");
    return {number_at<uint64_t>(archive, end64 + 48), number_at<uint64_t>(archive, end64 + 32)};
  }
  malformed("it has no directory");
}

/// Replaces sizes that do not fit 32 bits by those of the zip64 extra field.
void read_zip64(entry& e, bytes extra) {
  while (extra.size() >= 4) {
    const auto id = number_at<uint16_t>(extra, 0);
    const bytes body = part(extra, 4, number_at<uint16_t>(extra, 2));
    uint64_t at = 0;
    if (id == zip64_extra)
      for (uint64_t* field : {&e.size, &e.packed, &e.local_at})
        if (*field == in_zip64) {
          *field = number_at<uint64_t>(body, at);
          at += sizeof(uint64_t);
        }
    extra = extra.subspan(4 + body.size());
  }
}

/// Reads the directory entry at `at` and moves `at` after it.
entry read_entry(bytes archive, uint64_t& at) {
  const bytes head = part(archive, at, entry_size);
  if (number_at<uint32_t>(head, 0) != entry_signature)
    malformed("a directory entry is missing");
  entry e;
  e.flags = number_at<uint16_t>(head, 8);
  e.method = number_at<uint16_t>(head, 10);
  e.crc = number_at<uint32_t>(head, 16);
  e.packed = number_at<uint32_t>(head, 20);
  e.size = number_at<uint32_t>(head, 24);
  e.local_at = number_at<uint32_t>(head, 42);
  const auto name_size = number_at<uint16_t>(head, 28);
  const auto extra_size = number_at<uint16_t>(head, 30);
  const auto comment_size = number_at<uint16_t>(head, 32);
  const bytes name = part(archive, at + entry_size, name_size);
  e.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  read_zip64(e, part(archive, at + entry_size + name_size, extra_size));
  at += entry_size + name_size + extra_size + comment_size;
  return e;
}

bytes packed_bytes(bytes archive, const entry& e) {
  const bytes head = part(archive, e.local_at, local_size);
  if (number_at<uint32_t>(head, 0) != local_signature)
    malformed("an entry's header is missing");
  const uint64_t name_and_extra = uint64_t{number_at<uint16_t>(head, 26)} + number_at<uint16_t>(head, 28);
  return part(archive, e.local_at + local_size + name_and_extra, e.packed);
}

/// A raw deflate stream being inflated.
class inflater {
public:
  explicit inflater(bytes input) : input_(input) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK)
      throw std::bad_alloc();
  }
  ~inflater() { inflateEnd(&stream_); }
  inflater(const inflater&) = delete;
  inflater& operator=(const inflater&) = delete;

  /// Fills `out`; throws if the stream is malformed or ends before.
  void fill(std::span<std::byte> out) {
    while (!out.empty()) {
      if (stream_.avail_in == 0) {
        const bytes next = input_.first(std::min<size_t>(input_.size(), step));
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(next.data()));
        stream_.avail_in = static_cast<uInt>(next.size());
        input_ = input_.subspan(next.size());
      }
      const auto room = static_cast<uInt>(std::min<size_t>(out.size(), step));
      stream_.next_out = reinterpret_cast<Bytef*>(out.data());
      stream_.avail_out = room;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      out = out.subspan(room - stream_.avail_out);
      if (!out.empty() && (status == Z_STREAM_END || status != Z_OK))
        malformed("an array's compressed bytes are damaged or too short");
    }
  }

private:
  static constexpr size_t step = 1 << 30; // zlib counts in 32 bits
  bytes input_;
  z_stream stream_{};
};

uint32_t crc_of(bytes data) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

tensor read_array(bytes archive, const entry& e) {
  const bytes packed = packed_bytes(archive, e);
  if (e.flags & 1)
    malformed("encrypted arrays are not supported");
  constexpr uint16_t stored = 0, deflated = 8;
  if (e.method == stored) {
    if (e.packed != e.size || crc_of(packed) != e.crc)
      malformed("an array's bytes are damaged");
    return parse_npy(packed);
  }
  if (e.method != deflated)
    malformed("an array's compression method is not supported");
  // The array's own header says how much there is to inflate, before memory for it is taken.
  std::vector<std::byte> start(std::min<uint64_t>(e.size, max_npy_header_bytes));
  inflater(packed).fill(start);
  const int64_t total = parse_npy_header(start).total_bytes();
  constexpr uint64_t best_ratio = 1040; // of deflate, a little over 1032
  if (static_cast<uint64_t>(total) != e.size || e.size / best_ratio > e.packed)
    malformed("an array's size is not what its header needs");
  std::vector<std::byte> whole(e.size);
  inflater(packed).fill(whole);
  if (crc_of(whole) != e.crc)
    malformed("an array's bytes are damaged");
  return parse_npy(whole);
}

/// Reads the directory. Its sizes are added up before anything is inflated.
std::vector<entry> read_directory(bytes archive) {
  const directory found = find_directory(archive);
  const int64_t allowed = checked_add(limits::unpacked_bytes,
                                      checked_mul(static_cast<int64_t>(archive.size()), limits::unpacked_bytes_a_byte));
  std::vector<entry> entries;
  uint64_t at = found.at, packed = 0, unpacked = 0;
  for (uint64_t i = 0; i < found.count; ++i) {
    const entry& e = entries.emplace_back(read_entry(archive, at));
    if (e.packed > archive.size() - packed)
      malformed("its arrays overlap");
    packed += e.packed;
    if (e.size > static_cast<uint64_t>(allowed) - unpacked)
      malformed("its arrays are too large for an archive of this size; store them uncompressed, or as .npy files");
    unpacked += e.size;
  }
  return entries;
}

} // namespace

std::map<std::string, tensor> parse_npz(bytes archive) {
  std::map<std::string, tensor> arrays;
  for (const entry& e : read_directory(archive)) {
    constexpr std::string_view suffix = ".npy";
    if (!std::string_view(e.name).ends_with(suffix))
      malformed("it holds something that is not a .npy array");
    const std::string name = e.name.substr(0, e.name.size() - suffix.size());
    try {
      if (!arrays.emplace(name, read_array(archive, e)).second)
        malformed("two arrays have the same name");
    } catch (const error& problem) {
      fail(problem.code(), "array '{}': {}", name, problem.what());
    }
  }
  return arrays;
}

} // namespace troupe
