// A device's ledger (run/device_ledger.hpp) as the sessions of several threads use it: under a lock, and accounts are
// told what concerns them.
#pragma once

#include "run/device_ledger.hpp"
#include "run/ledger_account.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>

namespace troupe {

/// Thread-safe.
class shared_ledger : public std::enable_shared_from_this<shared_ledger> {
public:
  /// `limit`: bytes that plans may use.
  explicit shared_ledger(int64_t limit) : ledger_(limit) {}

  /// Opens a session's account; `notify` is called after changes that concern it: it should look again. It is called
  /// without locks, from whichever thread made the change.
  std::unique_ptr<ledger_account> open(std::function<void()> notify);

  /// Sessions of other processes, which the ledger does not know, lack `bytes` that are held here: until these
  /// are given back, they are waited for as a session is that waits. 0: they lack none any more.
  void claim(int64_t bytes);

  /// Returns how many bytes all accounts hold.
  int64_t used();

private:
  friend class shared_account;

  /// Makes a change, `f`, which returns whom to tell.
  template <class F>
  void change(F&& f);

  std::mutex mutex_;
  device_ledger ledger_;
  std::map<device_ledger::account, std::function<void()>> listeners_;
  std::optional<device_ledger::account> outside_; // for claims
  std::atomic<bool> somebody_waits_{false};       // to be asked without a lock
};

} // namespace troupe
