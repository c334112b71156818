#include "run/device_ledger.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

void tell(const std::vector<std::function<void()>>& listeners) {
  for (const auto& listener : listeners)
    listener();
}

} // namespace

std::unique_ptr<ledger_account> device_ledger::open(std::function<void()> notify) {
  std::unique_ptr<ledger_account> account(new ledger_account(shared_from_this(), std::move(notify)));
  const std::lock_guard lock(mutex_);
  accounts_.push_back(account.get());
  return account;
}

std::deque<device_ledger::waiter>::iterator device_ledger::place_of(const ledger_account& account) {
  return std::find_if(queue_.begin(), queue_.end(), [&](const waiter& w) { return w.account == &account; });
}

device_ledger::listeners device_ledger::others(const ledger_account* except) const {
  listeners all;
  for (const ledger_account* a : accounts_)
    if (a != except)
      all.push_back(a->notify_);
  return all;
}

device_ledger::listeners device_ledger::next_in_turn() const {
  if (queue_.empty() || used_ + queue_.front().bytes > limit_)
    return {};
  return {queue_.front().account->notify_};
}

device_ledger::listeners device_ledger::enter_queue(ledger_account& account, int64_t bytes) {
  const auto own = place_of(account);
  if (own == queue_.end())
    queue_.push_back({&account, bytes});
  else if (std::exchange(own->bytes, bytes) >= bytes)
    return {};
  somebody_waits_ = true;
  return others(&account);
}

device_ledger::listeners device_ledger::leave_queue(const ledger_account& account) {
  const auto own = place_of(account);
  if (own == queue_.end())
    return {};
  queue_.erase(own);
  somebody_waits_ = !queue_.empty();
  return queue_.empty() ? others(&account) : next_in_turn(); // without a queue, all may begin runs again
}

ledger_account::~ledger_account() {
  device_ledger::listeners told;
  {
    const std::lock_guard lock(ledger_->mutex_);
    std::erase(ledger_->accounts_, this);
    ledger_->used_ -= held_;
    told = ledger_->leave_queue(*this);
    if (told.empty())
      told = ledger_->next_in_turn();
  }
  tell(told);
}

bool ledger_account::take(int64_t bytes) {
  device_ledger::listeners told;
  bool taken = false;
  {
    const std::lock_guard lock(ledger_->mutex_);
    auto& queue = ledger_->queue_;
    const bool in_turn = queue.empty() || queue.front().account == this;
    taken = in_turn && ledger_->used_ + bytes <= ledger_->limit_;
    if (taken) {
      held_ += bytes;
      ledger_->used_ += bytes;
      told = ledger_->leave_queue(*this);
    } else {
      told = held_ + bytes <= ledger_->limit_ ? ledger_->enter_queue(*this, bytes) : ledger_->leave_queue(*this);
    }
    waits_ = ledger_->place_of(*this) != queue.end();
  }
  tell(told);
  return taken;
}

void ledger_account::take_anyway(int64_t bytes) {
  withdraw();
  const std::lock_guard lock(ledger_->mutex_);
  held_ += bytes;
  ledger_->used_ += bytes;
}

void ledger_account::give_back(int64_t bytes) {
  device_ledger::listeners told;
  {
    const std::lock_guard lock(ledger_->mutex_);
    held_ -= bytes;
    ledger_->used_ -= bytes;
    told = ledger_->next_in_turn();
  }
  tell(told);
}

void ledger_account::withdraw() {
  if (!waits_)
    return;
  device_ledger::listeners told;
  {
    const std::lock_guard lock(ledger_->mutex_);
    told = ledger_->leave_queue(*this);
    waits_ = false;
  }
  tell(told);
}

std::optional<int64_t> ledger_account::missing_elsewhere() const {
  if (!ledger_->somebody_waits_)
    return std::nullopt;
  const std::lock_guard lock(ledger_->mutex_);
  if (ledger_->queue_.empty() || ledger_->queue_.front().account == this || held_ == 0)
    return std::nullopt;
  return std::max<int64_t>(ledger_->used_ + ledger_->queue_.front().bytes - ledger_->limit_, 0);
}

} // namespace troupe
