#include "run/shared_ledger.hpp"

#include <utility>

namespace troupe {

template <class F>
void shared_ledger::change(F&& f) {
  std::vector<std::function<void()>> told;
  {
    const std::lock_guard lock(mutex_);
    for (device_ledger::account a : f(ledger_))
      // A copy: the account may close before its listener is called without the lock.
      told.push_back(listeners_.at(a));
    somebody_waits_ = ledger_.somebody_waits();
  }
  for (const auto& listener : told)
    listener();
}

class shared_account final : public ledger_account {
public:
  shared_account(std::shared_ptr<shared_ledger> ledger, device_ledger::account id)
      : shared_(std::move(ledger)), id_(id) {}
  shared_account(const shared_account&) = delete;
  shared_account& operator=(const shared_account&) = delete;

  ~shared_account() override {
    shared_->change([&](device_ledger& l) {
      shared_->listeners_.erase(id_);
      return l.close(id_);
    });
  }

  bool take(int64_t bytes) override {
    bool taken = false;
    shared_->change([&](device_ledger& l) {
      device_ledger::answer answer = l.take(id_, bytes);
      taken = answer.taken;
      waits_ = l.waits(id_);
      return std::move(answer.others);
    });
    return taken;
  }

  void take_anyway(int64_t bytes) override {
    waits_ = false;
    shared_->change([&](device_ledger& l) { return l.take_anyway(id_, bytes); });
  }

  void give_back(int64_t bytes) override {
    shared_->change([&](device_ledger& l) { return l.give_back(id_, bytes); });
  }

  bool waits() const override { return waits_; }

  void withdraw() override {
    if (std::exchange(waits_, false))
      shared_->change([&](device_ledger& l) { return l.withdraw(id_); });
  }

  std::optional<int64_t> missing_elsewhere() const override {
    // Asked for every device of a session, at every run, and hardly ever does an account wait. One that begins to wait
    // now tells the others, so that they ask again.
    if (!shared_->somebody_waits_)
      return std::nullopt;
    const std::lock_guard lock(shared_->mutex_);
    return shared_->ledger_.missing_elsewhere(id_);
  }

private:
  const std::shared_ptr<shared_ledger> shared_;
  const device_ledger::account id_;
  bool waits_ = false; // what the ledger says, kept if it can be asked without a lock
};

void shared_ledger::claim(int64_t bytes) {
  change([&](device_ledger& l) {
    if (!outside_) {
      outside_ = l.open();
      listeners_[*outside_] = [this] { // it is a member that calls this
        change([&](device_ledger& now) {
          return now.may_take(*outside_) ? now.withdraw(*outside_) : device_ledger::told();
        });
      };
    }
    return l.claim(*outside_, bytes);
  });
}

int64_t shared_ledger::used() {
  const std::lock_guard lock(mutex_);
  return ledger_.used();
}

std::unique_ptr<ledger_account> shared_ledger::open(std::function<void()> notify) {
  const std::lock_guard lock(mutex_);
  const device_ledger::account id = ledger_.open();
  listeners_[id] = std::move(notify);
  return std::make_unique<shared_account>(shared_from_this(), id);
}

} // namespace troupe
