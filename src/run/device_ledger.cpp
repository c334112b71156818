#include "run/device_ledger.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

device_ledger::account device_ledger::open() {
  held_[++opened_] = 0;
  return opened_;
}

device_ledger::told device_ledger::close(account a) {
  used_ -= held_.at(a);
  held_.erase(a);
  const told all = withdraw(a);
  return all.empty() ? next_in_turn() : all;
}

device_ledger::told device_ledger::others(account except) const {
  told all;
  for (const auto& [a, bytes] : held_)
    if (a != except)
      all.push_back(a);
  return all;
}

device_ledger::told device_ledger::next_in_turn() const {
  if (queue_.empty() || used_ + queue_.front().bytes > limit_)
    return {};
  return {queue_.front().who};
}

device_ledger::told device_ledger::enter_queue(account a, int64_t bytes) {
  const auto own = std::ranges::find(queue_, a, &waiter::who);
  if (own == queue_.end())
    queue_.push_back({a, bytes});
  // It keeps its place. Others let go of memory for the larger need already, so a smaller one is no news to them.
  else if (std::exchange(own->bytes, bytes) >= bytes)
    return {};
  return others(a);
}

device_ledger::told device_ledger::withdraw(account a) {
  const auto own = std::ranges::find(queue_, a, &waiter::who);
  if (own == queue_.end())
    return {};
  queue_.erase(own);
  return queue_.empty() ? others(a) : next_in_turn(); // without a queue, all may begin runs again
}

device_ledger::answer device_ledger::take(account a, int64_t bytes) {
  const bool in_turn = queue_.empty() || queue_.front().who == a;
  if (!in_turn || used_ + bytes > limit_)
    // An account whose own plans would exceed the limit gets no room from others, and would hold up the queue for ever.
    return {false, held_.at(a) + bytes <= limit_ ? enter_queue(a, bytes) : withdraw(a)};
  held_[a] += bytes;
  used_ += bytes;
  return {true, withdraw(a)};
}

device_ledger::told device_ledger::take_anyway(account a, int64_t bytes) {
  const told all = withdraw(a);
  held_.at(a) += bytes;
  used_ += bytes;
  return all;
}

device_ledger::told device_ledger::give_back(account a, int64_t bytes) {
  held_.at(a) -= bytes;
  used_ -= bytes;
  return next_in_turn();
}

device_ledger::told device_ledger::claim(account a, int64_t bytes) {
  const int64_t possible = std::min(bytes, used_ - held_.at(a));
  // A waiter has room when `used_` and its bytes fit the limit. With these bytes, that is once `possible` bytes have
  // been given back.
  return possible > 0 ? enter_queue(a, limit_ - used_ + possible) : withdraw(a);
}

bool device_ledger::may_take(account a) const {
  return !queue_.empty() && queue_.front().who == a && used_ + queue_.front().bytes <= limit_;
}

bool device_ledger::waits(account a) const {
  return std::ranges::find(queue_, a, &waiter::who) != queue_.end();
}

std::optional<int64_t> device_ledger::missing_elsewhere(account a) const {
  if (queue_.empty() || queue_.front().who == a || held_.at(a) == 0)
    return std::nullopt;
  return std::max<int64_t>(used_ + queue_.front().bytes - limit_, 0);
}

} // namespace troupe
