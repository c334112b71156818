// What is to happen in virtual time, in its order; what happens at one time, in the order in which it was scheduled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace troupe::sim {

/// Seconds since the beginning of a simulation.
using seconds = double;

/// Not thread-safe.
class event_queue {
public:
  using action = std::function<void()>;

  seconds now() const { return now_; }

  /// Schedules an action; a time that is past counts as now.
  void at(seconds time, action what) {
    events_.push_back({std::max(time, now_), scheduled_++, std::move(what)});
    std::push_heap(events_.begin(), events_.end(), later{});
  }
  void after(seconds delay, action what) { at(now_ + delay, std::move(what)); }

  /// Lets the next thing happen; returns whether there was one.
  bool step() {
    if (events_.empty())
      return false;
    std::pop_heap(events_.begin(), events_.end(), later{});
    const event next = std::move(events_.back());
    events_.pop_back();
    now_ = next.time;
    next.what();
    return true;
  }

private:
  struct event {
    seconds time = 0;
    uint64_t order = 0;
    action what;
  };
  struct later {
    bool operator()(const event& a, const event& b) const {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };

  seconds now_ = 0;
  uint64_t scheduled_ = 0;
  std::vector<event> events_; // a heap
};

} // namespace troupe::sim
