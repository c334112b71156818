// The callers' side of a session's queue: it bounds how many requests have no answer, and makes callers wait.
#pragma once

#include "actors/messages.hpp"

#include <condition_variable>
#include <mutex>

namespace troupe::actors {

/// Counts requests; thread-safe. Held by the door and by each ticket, so that it outlives both.
class request_gate : public std::enable_shared_from_this<request_gate> {
public:
  explicit request_gate(size_t limit) : limit_(limit) {}

  /// A place among the requests that have no answer: given back when it dies.
  using ticket = std::shared_ptr<const void>;
  /// Waits for a place. Throws `errc::timeout` after `deadline`, `errc::cancelled` if `cancel` asks for it.
  ticket enter(std::optional<run_time> deadline, const std::stop_token& cancel);
  /// Takes a place, beyond the limit if it must be.
  ticket enter_at_once();

private:
  ticket take();

  const size_t limit_;
  std::mutex mutex_; // guards taken_
  std::condition_variable_any changed_;
  size_t taken_ = 0;
};

/// Where requests go in. Thread-safe. The queue ends after its last request, once the door is gone.
class stream_door {
public:
  /// `gate`: that of the session, which may have several doors.
  stream_door(stream_ref actor, std::shared_ptr<request_gate> gate)
      : actor_(std::move(actor)), gate_(std::move(gate)) {}
  ~stream_door();
  stream_door(const stream_door&) = delete;
  stream_door& operator=(const stream_door&) = delete;

  const stream_ref& actor() const { return actor_; }
  request_gate& gate() const { return *gate_; }

private:
  stream_ref actor_;
  std::shared_ptr<request_gate> gate_;
};

} // namespace troupe::actors
