// What one session may have on a worker at a time. An honest session has far less; one that wants more loses its link,
// before it has cost the others anything.
//
// `session_service` calls it for every message that comes, before anything is done, and `session_line` for every
// message that is said.
#pragma once

#include "remote/messages.hpp"

#include <mutex>
#include <set>
#include <unordered_map>

namespace troupe::remote {

struct session_limits {
  size_t installs = 1024;                // that have no answer
  size_t chunks = size_t{1} << 16;       // the same
  size_t questions = 4096;               // the same: values to fetch or to put, counters
  size_t plans = 4096;                   // until they are forgotten
  int64_t plan_bytes = int64_t{4} << 30; // of these plans, encoded
  size_t bound_plans = size_t{1} << 16;  // on each device, until they are retired
  size_t kept_values = size_t{1} << 20;  // until they are released
  size_t peer_addresses = 4096;          // that it has ever named
};

/// See the top of this file. Thread-safe.
class session_budget {
public:
  explicit session_budget(const session_limits& limits = {}) : limits_(limits) {}

  /// Charges for a message of the session's. Throws `errc::invalid_input` if that is too much: the link must end.
  /// Returns false if the message is to be passed over, since it is about a plan that is not here.
  bool take(const message& come);
  /// Gives back what an answer to the session ends.
  void give_back(const message& said);
  /// Throws `errc::invalid_input` if the session may not keep one more value than `kept`.
  void check_kept(size_t kept) const;

private:
  void charge(const install& order);
  void charge(const run_chunk& order);
  void charge_address(const std::string& address);

  const session_limits limits_;
  mutable std::mutex mutex_; // guards the rest
  size_t installs_ = 0, chunks_ = 0, questions_ = 0;
  std::unordered_map<uint64_t, int64_t> plans_; // bytes by number
  int64_t plan_bytes_ = 0;
  std::set<std::pair<uint32_t, uint64_t>> bound_plans_; // device, number
  std::set<std::string> addresses_;
};

} // namespace troupe::remote
