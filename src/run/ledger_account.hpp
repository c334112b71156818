// What a session holds of one device's memory, as its machine sees it: an account with the device's ledger
// (device_ledger.hpp). Used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// Its end gives all back.
class ledger_account {
public:
  virtual ~ledger_account() = default;

  /// Takes `bytes`; or returns false and, if others have what is missing, waits in the queue until it is told to ask
  /// again.
  virtual bool take(int64_t bytes) = 0;
  /// Takes `bytes`, whatever the limit: the device has the last word.
  virtual void take_anyway(int64_t bytes) = 0;
  virtual void give_back(int64_t bytes) = 0;
  virtual bool waits() const = 0;
  /// Waits no more.
  virtual void withdraw() = 0;
  /// If another account waits and something is held here: returns how many bytes that one lacks.
  virtual std::optional<int64_t> missing_elsewhere() const = 0;
};

using ledger_accounts = std::vector<std::shared_ptr<ledger_account>>; // by device of the session

} // namespace troupe
