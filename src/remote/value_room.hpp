// Host memory that sessions make a worker hold: values on their way to chunks, values that are kept, bindings.
//
// All sessions of a worker share one room. How much of it a session may hold depends on how much is free: never more
// than it leaves for the others (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6, 1998).
// So a session alone gets half, n greedy ones get 1/(n+1) each, and the next one still finds as much.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

namespace troupe::remote {

/// Memory that is held; the last copy of the handle gives it back.
using held_memory = std::shared_ptr<const void>;

/// See the top of this file. Thread-safe.
class value_room {
public:
  /// `bytes`: what all sessions may hold together.
  explicit value_room(int64_t bytes) : bytes_(bytes) {}

  /// The part of one session. Thread-safe.
  class share {
  public:
    explicit share(std::shared_ptr<value_room> of) : room_(std::move(of)) {}

    /// Throws `errc::out_of_memory` if the session may not hold `bytes` more.
    held_memory hold(int64_t bytes);

  private:
    const std::shared_ptr<value_room> room_;
    const std::shared_ptr<int64_t> held_ = std::make_shared<int64_t>(0); // guarded by the room's mutex
  };

  /// Returns how many bytes all sessions hold.
  int64_t held();

private:
  const int64_t bytes_;
  std::mutex mutex_; // guards the rest
  int64_t held_ = 0; // by all sessions
};

} // namespace troupe::remote
