// The plans that a host has been told of, and the proofs of their weights that it may ask for. Thread-safe.
#pragma once

#include "remote/outbox.hpp"
#include "remote/values.hpp"

#include <atomic>
#include <thread>

namespace troupe::remote {

/// See the top of this file.
class told_plans {
public:
  /// Plans and their weights are in `offers`, which lives longer; `to` leads to the host.
  told_plans(outbox& offers, link_ptr to) : offers_(offers), link_(std::move(to)) {}

  /// Returns what an `install` calls a plan, and tells the host of which plans there will be none any more.
  offered_plan offer(const std::shared_ptr<const plan>& p);
  /// Shows the host that weights of plans that it was told of are here. Throws `errc::invalid_input` if no honest host
  /// would ask that. Not to be called by two threads at a time, nor together with `stop`.
  void prove(prove_weights wanted);
  /// Ends what is being proven as soon as may be.
  void stop() { prover_.request_stop(); }

private:
  using leaves = std::shared_ptr<const std::unordered_set<hash128>>;
  struct told_plan {
    std::weak_ptr<const plan> of;
    leaves weights;
  };

  outbox& offers_;
  const link_ptr link_;
  std::mutex mutex_; // guards `plans_`
  std::map<uint64_t, told_plan> plans_;
  std::atomic<bool> is_proving_{false};
  std::jthread prover_; // last, since it reads the members above
};

} // namespace troupe::remote
