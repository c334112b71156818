// The bound plans that one session has on a worker's devices. Numbers that the session gives are its own.
//
// An install is made on the thread of the plan shelf, then on the device, and answered by `installed` when that is
// done. Thread-safe.
#pragma once

#include "remote/lent_plan.hpp"
#include "remote/plan_shelf.hpp"

namespace troupe::remote {

/// See the top of this file. What does not fit what the session has said before throws `errc::invalid_input`.
class session_installs : public std::enable_shared_from_this<session_installs> {
public:
  /// `line` and `puller` lead to the session's process.
  session_installs(std::shared_ptr<shared_service> shared, std::shared_ptr<session_line> line,
                   std::shared_ptr<piece_puller> puller);

  void install(remote::install order);
  void retire(const remote::retire& order);
  /// No install names the plan any more.
  void forget(uint64_t plan);
  lent_plan_ptr find(uint64_t bound_plan, uint32_t device) const;
  /// Loads the plans' weights.
  weight_loader& weights() { return weights_; }
  /// The link has ended: nothing comes from there any more, and all plans go once their chunks have ended.
  void end(const std::string& why);

private:
  using lent_key = std::pair<uint64_t, uint32_t>; // the session's number of a bound plan, and a device

  void make_and_install(const remote::install& order);
  void finish(const remote::install& order, lent_plan_ptr made, const failure& why);

  const std::shared_ptr<shared_service> shared_;
  const std::shared_ptr<session_line> line_;
  const std::shared_ptr<session_memory> memory_;
  mutable std::mutex mutex_; // guards the next three
  bool ended_ = false;
  std::map<lent_key, lent_plan_ptr> lent_;                     // null while one is being installed
  std::map<lent_key, std::weak_ptr<const lent_plan>> retired_; // chunks may still run by them
  weight_loader weights_;
  plan_shelf plans_; // its thread ends before all of the above
};

} // namespace troupe::remote
