#include "recording/record_file.hpp"

#include "base/text_file.hpp"

#include <cstdio>

namespace troupe::recording {
namespace {

constexpr std::string_view magic = "troupe recording 1\n";
constexpr size_t block_bytes = size_t{1} << 20;
constexpr int64_t most_bytes = int64_t{1} << 36; // of a file that is read

} // namespace

record_writer::record_writer(std::filesystem::path file, const session_facts& session, size_t memory)
    : file_(std::move(file)), session_(encode(session)), memory_(memory) {
  if (memory_ == 0)
    write_head();
  if (failed_)
    fail(errc::io, "cannot write the recording '{}'", file_.string());
  begin_block();
}

void record_writer::begin_block() {
  block_.clear();
  block_.reserve(block_bytes + block_bytes / 8);
  in_block_ = 0;
}

void record_writer::write_head() {
  out_.open(file_, std::ios::binary | std::ios::trunc);
  std::vector<uint8_t> head(magic.begin(), magic.end());
  wire::writer{head}(session_, dropped_);
  write(head);
}

void record_writer::write(const std::vector<uint8_t>& bytes) {
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
  if (failed_)
    return;
  put(block_, r);
  ++in_block_;
  if (block_.size() < block_bytes)
    return;
  if (memory_ == 0 || out_.is_open())
    return flush();
  blocks_.emplace_back(std::move(block_), in_block_);
  while (blocks_.size() * block_bytes >= memory_) {
    dropped_ += blocks_.front().second;
    blocks_.pop_front();
  }
  begin_block();
}

void record_writer::keep() {
  if (failed_)
    return;
  if (memory_ > 0 && !out_.is_open()) {
    write_head();
    for (const auto& [bytes, records] : blocks_)
      write(bytes);
    blocks_.clear();
    say_if_failed();
  }
  flush();
}

void record_writer::flush() {
  if (failed_ || !out_.is_open())
    return;
  write(block_);
  begin_block();
  say_if_failed();
}

recorded_session read_recording(const std::filesystem::path& file) {
  const std::string what = fmt::format("the recording '{}'", file.string());
  const std::string text = read_text(file, most_bytes, what);
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
