#include "recording/record_file.hpp"

#include "base/text_file.hpp"

#include <cstdio>

namespace troupe::recording {
namespace {

constexpr std::string_view magic = "troupe recording 1\n";
constexpr size_t block_bytes = size_t{1} << 20;
constexpr int64_t most_file_bytes = int64_t{1} << 36;

} // namespace

record_writer::record_writer(std::filesystem::path file, const session_facts& session, size_t memory)
    : file_(std::move(file)), session_(encode(session)), memory_(memory) {
  if (memory_ == 0)
    write_head();
  if (failed_)
    fail(errc::io, "cannot write the recording '{}'", file_.string());
}

void record_writer::write_head() {
  out_.open(file_, std::ios::binary | std::ios::trunc);
  std::vector<uint8_t> head(magic.begin(), magic.end());
  wire::writer{head}(session_, dropped_);
  write(head);
}

void record_writer::write(std::span<const uint8_t> bytes) {
  if (failed_)
    return;
  out_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out_.flush();
  failed_ = !out_;
}

void record_writer::say_if_failed() const {
  if (failed_)
    fmt::print(stderr, "troupe: cannot write the recording '{}' any further; it ends here\n", file_.string());
}

void record_writer::add(const record& r) {
  more_.clear();
  if (!r.texts.empty() || !r.values.empty())
    wire::writer{more_}(r.texts, r.values);
  add(r.kind, r.names, r.numbers, more_);
}

void record_writer::add(kind what, std::span<const name> names, std::span<const int64_t> numbers,
                        std::span<const uint8_t> more) {
  if (failed_)
    return;
  const size_t most = most_bytes(names, numbers) + more.size();
  if (block_.room - block_.filled < most)
    next_block(most);
  uint8_t* const begin = block_.bytes.get() + block_.filled;
  uint8_t* const head = put_head(begin, what, names, numbers, !more.empty());
  block_.filled += static_cast<size_t>(std::ranges::copy(more, head).out - begin);
  ++block_.records;
}

void record_writer::next_block(size_t bytes) {
  if (memory_ == 0 || out_.is_open())
    flush();
  else if (block_.records > 0) {
    kept_ += block_.room;
    blocks_.push_back(std::exchange(block_, {}));
  }
  const size_t room = std::max(bytes, block_bytes);
  for (; !blocks_.empty() && kept_ + room > memory_; blocks_.pop_front()) {
    block_ = std::move(blocks_.front());
    kept_ -= block_.room;
    dropped_ += block_.records;
  }
  if (block_.room < room)
    block_ = {.bytes = std::make_unique_for_overwrite<uint8_t[]>(room), .room = room};
  block_.filled = 0;
  block_.records = 0;
}

void record_writer::keep() {
  if (failed_)
    return;
  if (memory_ > 0 && !out_.is_open()) {
    write_head();
    for (const block& b : blocks_)
      write(b);
    blocks_.clear();
    say_if_failed();
  }
  flush();
}

void record_writer::flush() {
  if (failed_ || !out_.is_open())
    return;
  write(block_);
  block_.filled = 0;
  block_.records = 0;
  say_if_failed();
}

recorded_session read_recording(const std::filesystem::path& file) {
  const std::string what = fmt::format("the recording '{}'", file.string());
  const std::string text = read_text(file, most_file_bytes, what);
  if (!text.starts_with(magic))
    fail(errc::invalid_input, "{} is not a recording of this version of troupe", what);
  recorded_session made;
  made.bytes.assign(text.begin(), text.end());
  try {
    wire::reader in(std::span<const uint8_t>(made.bytes).subspan(magic.size()), "its head");
    std::vector<uint8_t> session;
    in(session, made.dropped);
    made.session = decode_session(session);
    made.records_at = made.bytes.size() - in.left();
  } catch (const error& e) {
    fail(errc::invalid_input, "{}: {}", what, e.what());
  }
  return made;
}

} // namespace troupe::recording
