// What one session holds of the devices' memory on a worker: counted as a session counts it itself
// (run/installations.hpp), in ledgers that all sessions of the worker share.
//
// An install that finds no room waits its turn, for a while; sessions that hold what it lacks are told, so that they
// let go of plans that no run uses. A chunk does not wait. Thread-safe.
#pragma once

#include "plan/bind/bound_plan.hpp"
#include "run/shared_ledger.hpp"

#include <chrono>
#include <condition_variable>

namespace troupe::remote {

using shared_ledgers = std::vector<std::shared_ptr<shared_ledger>>; // by device of the worker

class session_memory : public std::enable_shared_from_this<session_memory> {
public:
  /// Is told that others lack `bytes` of a device that this session holds; 0: they lack none any more.
  using told_lack = std::function<void(uint32_t device, int64_t bytes)>;

  static std::shared_ptr<session_memory> make(const shared_ledgers& ledgers, told_lack told);
  session_memory(const session_memory&) = delete;
  session_memory& operator=(const session_memory&) = delete;

  /// Takes what the plan's part for device `self` of it, which is `device` here, needs beside what is held already.
  /// Returns false if it is not to be had within `patience`.
  bool take(uint32_t device, const bound_plan& bound, device_index self, std::chrono::milliseconds patience);
  /// Takes what arena slots up to `slot` need, of a plan for which `take` has succeeded; false if there is no room now.
  bool take_slot(uint32_t device, const bound_plan& bound, device_index self, uint32_t slot);
  /// To be called after the device has been told to retire the plan.
  void give_back(uint32_t device, const bound_plan& bound, device_index self);
  /// Ends all waits, and those that would begin later.
  void stop_waiting();

private:
  struct held_layout {
    uint32_t plans = 0; // bound plans of it
    int64_t slots = 0;
  };
  struct device_book {
    std::shared_ptr<ledger_account> account;
    std::map<uint64_t, held_layout> layouts; // by id
    std::map<const plan*, uint32_t> plans;   // layouts of each: its weights are there
    int64_t told = 0;                        // how much others lack; guarded by telling_
  };

  explicit session_memory(told_lack told) : tell_(std::move(told)) {}
  bool take_now(uint32_t device, const bound_plan& bound, device_index self, bool& waits);
  /// Others have taken or given back; called by the ledgers.
  void look_again(uint32_t device);
  void wake();

  const told_lack tell_;
  std::mutex mutex_; // guards books_ but for the accounts' own questions
  std::vector<device_book> books_;
  std::mutex telling_; // so that what is told last is true
  std::mutex waking_;
  std::condition_variable woken_;
  uint64_t changes_ = 0; // this and the next: guarded by waking_
  bool stopped_ = false;
};

} // namespace troupe::remote
