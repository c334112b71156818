#include "universe/scheduler.hpp"

#include <algorithm>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace troupe::universe {
namespace {

/// Between two calls of a thread that does not wait: what a loop that reads the clock counts.
constexpr int64_t call_ns = 100;

/// Not `syscall`, which is virtual.
long system_call(long number, long first, long second, long third) {
  long result = number;
  register long fourth asm("r10") = 0;
  asm volatile("syscall" : "+a"(result) : "D"(first), "S"(second), "d"(third), "r"(fourth) : "rcx", "r11", "memory");
  return result;
}

void futex(std::atomic<uint32_t>& word, int what, uint32_t value) {
  system_call(SYS_futex, reinterpret_cast<long>(&word), what, value);
}

} // namespace

scheduler::scheduler(const thread_rules& rules, std::function<void(stuck)> when_stuck)
    : rules_(rules), when_stuck_(std::move(when_stuck)), process_(getpid()), random_(rules.seed) {
  running_ = &add();
  ready_.clear();
}

uint64_t scheduler::below(uint64_t limit) {
  // splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
  uint64_t z = random_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return (z ^ (z >> 31)) % limit;
}

double scheduler::chance() {
  constexpr uint64_t steps = uint64_t{1} << 53;
  return static_cast<double>(below(steps)) / static_cast<double>(steps);
}

virtual_thread& scheduler::add() {
  virtual_thread& made = *threads_.emplace_back(std::make_unique<virtual_thread>());
  made.number = static_cast<uint32_t>(threads_.size() - 1);
  ready_.push_back(&made);
  return made;
}

std::vector<virtual_thread*>& scheduler::waiting_for(const void* what) {
  return waiting_[(reinterpret_cast<uintptr_t>(what) >> 3) * 0x9e3779b97f4a7c15 >> 56];
}

bool scheduler::wait(const void* what, const char* call, int64_t until_ns) {
  virtual_thread& self = *running_;
  self.waits_for = what;
  self.call = call;
  self.until_ns = until_ns;
  self.timed_out = false;
  waiting_for(what).push_back(&self);
  if (until_ns != never_ns)
    late_.emplace(std::pair(until_ns, self.number), &self);
  hand_over(true);
  return !self.timed_out;
}

size_t scheduler::wake(const void* what, size_t most) {
  std::vector<virtual_thread*>& bucket = waiting_for(what);
  const auto begin = std::stable_partition(bucket.begin(), bucket.end(),
                                           [&](const virtual_thread* t) { return t->waits_for != what; });
  const size_t first = static_cast<size_t>(begin - bucket.begin()), waiting = bucket.size() - first;
  const size_t count = std::min(most, waiting);
  for (size_t i = 0; i < count; ++i) {
    std::swap(bucket[first + i], bucket[first + i + below(waiting - i)]);
    virtual_thread& woken = *bucket[first + i];
    if (woken.until_ns != never_ns)
      late_.erase({woken.until_ns, woken.number});
    woken.waits_for = nullptr;
    ready_.push_back(&woken);
  }
  bucket.erase(begin, begin + static_cast<ptrdiff_t>(count));
  return count;
}

void scheduler::wake_late_ones() {
  while (!late_.empty() && late_.begin()->first.first <= now_) {
    virtual_thread& woken = *late_.begin()->second;
    late_.erase(late_.begin());
    std::erase(waiting_for(woken.waits_for), &woken);
    woken.waits_for = nullptr;
    woken.timed_out = true;
    ready_.push_back(&woken);
  }
}

void scheduler::may_switch() {
  now_ += call_ns;
  if (rules_.stall_chance > 0 && chance() < rules_.stall_chance)
    wait(this, "stall", now_ + static_cast<int64_t>(below(static_cast<uint64_t>(rules_.longest_stall_ns))));
  else if (chance() < rules_.switch_chance) {
    ready_.push_back(running_);
    hand_over(true);
  }
}

virtual_thread& scheduler::next_thread() {
  wake_late_ones();
  if (ready_.empty()) {
    if (late_.empty())
      when_stuck_(stuck::all_wait);
    now_ = late_.begin()->first.first;
    wake_late_ones();
  }
  if (now_ > rules_.end_ns)
    when_stuck_(stuck::too_long);
  const size_t chosen = below(ready_.size());
  virtual_thread& next = *ready_[chosen];
  ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(chosen));
  digest_ = (digest_ ^ next.number ^ static_cast<uint64_t>(now_) << 16) * 0x9e3779b97f4a7c15;
  return next;
}

void scheduler::await_turn(virtual_thread& self) {
  while (self.may_run.exchange(0, std::memory_order_acquire) == 0)
    futex(self.may_run, FUTEX_WAIT_PRIVATE, 0);
  // The C library still frees what a thread has when it ends. If that went on beside the next thread, addresses, and
  // with them the order of what is sorted by address, would depend on which of them comes first.
  for (const int gone = std::exchange(ending_, 0); gone != 0 && system_call(SYS_tgkill, process_, gone, 0) == 0;)
    system_call(SYS_sched_yield, 0, 0, 0);
}

void scheduler::hand_over(bool come_back) {
  virtual_thread& self = *running_;
  virtual_thread& next = next_thread();
  if (&next == &self)
    return;
  ++switches_;
  running_ = &next;
  next.may_run.store(1, std::memory_order_release);
  futex(next.may_run, FUTEX_WAKE_PRIVATE, 1);
  if (come_back)
    await_turn(self);
}

void scheduler::end_thread() {
  virtual_thread& self = *running_;
  self.ended = true;
  ending_ = self.system_id;
  wake(&self);
  hand_over(false);
}

} // namespace troupe::universe
