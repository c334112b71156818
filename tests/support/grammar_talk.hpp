// Valid conversations of a session and of a worker, with one fault at a time (tests/cluster/grammar.cpp).
#pragma once

#include "support/spoken_session.hpp"

#include <random>

namespace troupe::test {

/// A plan whose first and last chunk are on the plan's device 0, and another one between them elsewhere.
struct round_trip {
  bound_plan_ptr bound;
  chunk_id first = 0, elsewhere = 0, last = 0;
};

/// Makes one of `size` by `size` floats for a device of a worker and one of this process.
round_trip there_and_back(const device_info& far, int64_t size = 8);

/// Chooses the fault.
class fault_source {
public:
  enum class kind : uint8_t { none, omission, repetition, order, number, owner, size };

  explicit fault_source(uint64_t seed) : random_(seed), what_(static_cast<kind>(below(7))) {}

  kind what() const { return what_; }
  uint64_t below(uint64_t limit) { return random_() % limit; }
  /// The fault in words, for people.
  const std::string& name() const { return name_; }
  void name(std::string n) { name_ = std::move(n); }

private:
  std::mt19937_64 random_;
  kind what_;
  std::string name_ = "none";
};

/// Holds one conversation on a new link to the host, which is left open. Returns the worker's fault; empty if there is
/// none.
std::string speak_as_session(far_host& host, fault_source& random);

/// Speaks as a worker to a session's side, which runs a chunk there. Returns that side's fault; empty if there is none.
std::string speak_as_worker(fault_source& random);

} // namespace troupe::test
