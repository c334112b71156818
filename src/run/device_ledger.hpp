// The memory of one device, as all sessions of the process share it: who holds how much, and who waits, first come, first served.
//
// A session opens an account with each device that it uses. Who asks for more than there is waits, and nobody who comes later passes;
// sessions that hold memory there are told, let go of plans that nobody runs, least recently used first, and begin no runs until the
// waiter has been served. An account whose turn has come is told, too; it asks again then.
//
// Bytes are given back after the device has been sent what frees them, so whoever gets them comes after that in the device's order.
//
// Thread-safe; an account itself is used by one thread at a time. `notify` is called without locks, from whichever thread made the change.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe {

class ledger_account;

class device_ledger : public std::enable_shared_from_this<device_ledger> {
public:
  /// `limit`: bytes that plans may use.
  explicit device_ledger(int64_t limit) : limit_(limit) {}

  /// Opens a session's account; `notify` is called after changes that concern it: it should look again.
  std::unique_ptr<ledger_account> open(std::function<void()> notify);

private:
  friend class ledger_account;
  using listeners = std::vector<std::function<void()>>;

  struct waiter {
    ledger_account* account;
    int64_t bytes;
  };

  std::deque<waiter>::iterator place_of(const ledger_account& account);
  /// Adds an account to the queue, or changes what it waits for, and takes it out; both return whom to tell.
  listeners enter_queue(ledger_account& account, int64_t bytes);
  listeners leave_queue(const ledger_account& account);
  listeners others(const ledger_account* except) const;
  /// Returns the first waiter's listener if it has room now.
  listeners next_in_turn() const;

  const int64_t limit_;
  mutable std::mutex mutex_;
  int64_t used_ = 0;
  std::deque<waiter> queue_;
  std::atomic<bool> somebody_waits_{false}; // whether there is a queue, to be asked without a lock
  std::vector<ledger_account*> accounts_;
};

/// What one session holds on one device. Its end gives all back.
class ledger_account {
public:
  ~ledger_account();
  ledger_account(const ledger_account&) = delete;
  ledger_account& operator=(const ledger_account&) = delete;

  /// Takes `bytes`; or returns false and, if others have what is missing, waits in the queue: `notify` says when to ask again.
  bool take(int64_t bytes);
  /// Takes `bytes`, whatever the limit: the device has the last word.
  void take_anyway(int64_t bytes);
  void give_back(int64_t bytes);
  bool waits() const { return waits_; }
  /// Waits no more.
  void withdraw();

  /// If another account waits and something is held here: returns how many bytes that one lacks.
  std::optional<int64_t> missing_elsewhere() const;

private:
  friend class device_ledger;
  ledger_account(std::shared_ptr<device_ledger> ledger, std::function<void()> notify)
      : ledger_(std::move(ledger)), notify_(std::move(notify)) {}

  const std::shared_ptr<device_ledger> ledger_;
  const std::function<void()> notify_;
  int64_t held_ = 0; // guarded by the ledger
  bool waits_ = false;
};

using ledger_accounts = std::vector<std::shared_ptr<ledger_account>>; // by device of the session

} // namespace troupe
