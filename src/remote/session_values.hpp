// The values that a worker keeps for one session, by the session's keys, and the memory that they take. Thread-safe.
#pragma once

#include "remote/session_line.hpp"
#include "remote/values.hpp"

namespace troupe::remote {

/// See the top of this file.
class session_values {
public:
  session_values(std::shared_ptr<shared_service> shared, std::shared_ptr<session_line> line)
      : shared_(std::move(shared)), line_(std::move(line)) {}

  /// Holds memory for a value that comes; throws `errc::out_of_memory`.
  held_memory hold(const sent_value& value) {
    return line_->room().hold(std::max(value.size, static_cast<int64_t>(value.bytes.size())));
  }
  /// Throws `errc::invalid_input` if no value has that key.
  value_ref find(const hash128& key) const;
  /// Keeps a value as long as the session may ask for it, and returns what it is told: with its bytes, if they
  /// fit in `room`. `held`: its memory, if that is held already.
  sent_value keep(const wanted_value& wanted, const value_ref& made, int64_t room = inline_bytes,
                  held_memory held = nullptr);
  /// Keeps all that a chunk has made, or nothing.
  std::vector<sent_value> keep_all(std::span<const wanted_value> wanted, std::span<const value_ref> made);
  void forget(const hash128& key);
  /// Forgets all; nothing is kept from now on.
  void end();

private:
  struct kept_entry {
    value_ref value;
    held_memory held;
    bool is_offered = false; // under its key, by this session
  };

  /// Keeps a value, whose memory is held, and offers its bytes, if they are in this host's memory.
  void add(const hash128& key, value_ref value, const tensor& blob, held_memory held);

  const std::shared_ptr<shared_service> shared_;
  const std::shared_ptr<session_line> line_;
  mutable std::mutex mutex_; // guards the rest
  bool ended_ = false;
  std::unordered_map<hash128, kept_entry> entries_;
};

} // namespace troupe::remote
