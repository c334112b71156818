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
  /// Called when a fault has shown: what is in memory goes to the file, the first time.
  void keep();

private:
  void begin_block();
  void write_head();
  void flush();
  /// Does nothing once writing has failed.
  void write(const std::vector<uint8_t>& bytes);
  void say_if_failed() const;

  const std::filesystem::path file_;
  const std::vector<uint8_t> session_;
  const size_t memory_;
  std::ofstream out_;
  std::vector<uint8_t> block_;                                   // being filled
  uint64_t in_block_ = 0;                                        // records
  std::deque<std::pair<std::vector<uint8_t>, uint64_t>> blocks_; // full ones, and how many records each has
  uint64_t dropped_ = 0;                                         // records
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
