// What the ledgers of devices have answered a recorded session, for one that does the same again.
#pragma once

#include "run/ledger_account.hpp"

#include <deque>
#include <utility>

namespace troupe::recording {

/// Unusual answers of ledgers that are still to come, over all accounts of the session.
struct ledger_script {
  std::deque<std::pair<int64_t, int64_t>> unusual; // after how many usual ones, the answer
  int64_t usual = 0;                               // since the last unusual one

  /// Returns the next answer; nullopt: the usual one.
  std::optional<int64_t> next() {
    if (unusual.empty() || unusual.front().first != usual) {
      ++usual;
      return std::nullopt;
    }
    usual = 0;
    const int64_t answer = unusual.front().second;
    unusual.pop_front();
    return answer;
  }
};

/// An account that answers as the recorded one did.
class scripted_account final : public ledger_account {
public:
  explicit scripted_account(std::shared_ptr<ledger_script> script) : script_(std::move(script)) {}

  bool take(int64_t) override { return !script_->next(); }
  void take_anyway(int64_t) override {}
  void give_back(int64_t) override {}
  bool waits() const override { return script_->next().has_value(); }
  void withdraw() override {}
  std::optional<int64_t> missing_elsewhere() const override { return script_->next(); }

private:
  const std::shared_ptr<ledger_script> script_;
};

} // namespace troupe::recording
