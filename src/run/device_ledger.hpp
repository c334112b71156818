// The memory of one device, as all sessions of the process share it: who holds how much, and who waits, first come,
// first served.
//
// A session opens an account with each device that it uses. Who asks for more than there is waits, and no later account
// passes; sessions that hold memory there are told, let go of plans that no run uses, least recently used first, and
// begin no runs until the waiter has been served. An account whose turn has come is told, too; it asks again then.
//
// Bytes are given back after the device has been sent what frees them, so the account that gets them comes after that
// in the device's order.
//
// Plain data, for one thread at a time: run/shared_ledger.hpp is the ledger of several threads, and tells those who are
// to be told.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace troupe {

class device_ledger {
public:
  using account = uint64_t;
  /// Accounts that a change concerns: they should look again.
  using told = std::vector<account>;

  /// `limit`: bytes that plans may use.
  explicit device_ledger(int64_t limit) : limit_(limit) {}

  account open();
  /// Gives back what an account holds, and ends it.
  told close(account a);

  struct answer {
    bool taken = false;
    told others;
  };
  /// Takes `bytes`; or, if others have what is missing, adds the account to the queue.
  answer take(account a, int64_t bytes);
  /// Takes `bytes`, whatever the limit, and leaves the queue.
  told take_anyway(account a, int64_t bytes);
  told give_back(account a, int64_t bytes);
  /// Adds the account to the queue, or changes what it waits for, until others have given back `bytes`, or all that
  /// they hold.
  told claim(account a, int64_t bytes);
  /// Returns whether the account is the first that waits, and has room now.
  bool may_take(account a) const;
  /// Leaves the queue.
  told withdraw(account a);

  /// Returns how many bytes all accounts hold.
  int64_t used() const { return used_; }
  bool waits(account a) const;
  bool somebody_waits() const { return !queue_.empty(); }
  /// If another account waits and `a` holds something: returns how many bytes that one lacks.
  std::optional<int64_t> missing_elsewhere(account a) const;

private:
  struct waiter {
    account who;
    int64_t bytes;
  };

  /// Adds an account to the queue, or changes what it waits for.
  told enter_queue(account a, int64_t bytes);
  told others(account except) const;
  /// Returns the first waiter if it has room now.
  told next_in_turn() const;

  const int64_t limit_;
  int64_t used_ = 0;
  std::deque<waiter> queue_;
  std::map<account, int64_t> held_;
  account opened_ = 0; // so far
};

} // namespace troupe
