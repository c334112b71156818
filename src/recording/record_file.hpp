// A recording on its way to a file, and back: what the session is made of, then its records.
#pragma once

#include "recording/record.hpp"
#include "recording/session_facts.hpp"

#include <deque>
#include <filesystem>
#include <fstream>

namespace troupe::recording {

/// Keeps records: in a file as they come, or the last ones in memory until they are wanted. A file that cannot be
/// written ends the recording, which a line on stderr says; the session goes on.
class record_writer {
public:
  /// `memory`: bytes of records to keep in memory; 0: they go to the file. Throws `errc::io` if it cannot be made.
  record_writer(std::filesystem::path file, const session_facts& session, size_t memory);
  ~record_writer() { flush(); }
  record_writer(const record_writer&) = delete;
  record_writer& operator=(const record_writer&) = delete;

  void add(const record& r);
  /// Adds a record that has no texts and no values.
  void add(kind what, std::span<const name> names, std::span<const int64_t> numbers) { add(what, names, numbers, {}); }
  /// Called when a fault has shown: what is in memory goes to the file, the first time.
  void keep();

private:
  /// Records that are kept or written together.
  struct block {
    std::unique_ptr<uint8_t[]> bytes;
    size_t room = 0, filled = 0;
    uint64_t records = 0;
  };

  /// `more`: the record's texts and values as bytes; empty if it has none.
  void add(kind what, std::span<const name> names, std::span<const int64_t> numbers, std::span<const uint8_t> more);
  /// Puts the block away and begins the next one, which has room for these bytes at least.
  void next_block(size_t bytes);
  void write_head();
  void flush();
  /// Does nothing once writing has failed.
  void write(std::span<const uint8_t> bytes);
  void write(const block& b) { write({b.bytes.get(), b.filled}); }
  void say_if_failed() const;

  const std::filesystem::path file_;
  const std::vector<uint8_t> session_;
  const size_t memory_;
  std::ofstream out_;
  block block_;              // being filled
  std::deque<block> blocks_; // full ones, of which
  size_t kept_ = 0;          // is the room
  std::vector<uint8_t> more_;
  uint64_t dropped_ = 0; // records
  bool failed_ = false;
};

/// A recording that was read.
struct recorded_session {
  session_facts session;
  uint64_t dropped = 0; // records before the first one here
  std::vector<uint8_t> bytes;
  size_t records_at = 0; // in `bytes`

  std::span<const uint8_t> records() const { return std::span(bytes).subspan(records_at); }
};

/// Reads a file. Throws `errc::io`, `errc::invalid_input`.
recorded_session read_recording(const std::filesystem::path& file);

} // namespace troupe::recording
