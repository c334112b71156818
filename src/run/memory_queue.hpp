// Who gets the memory of devices: arena slots for executions, the runs that wait for memory, first come, first served,
// and what other sessions lack. Bound plans that no run uses make room, least recently used first. Not thread-safe.
#pragma once

#include "run/installations.hpp"

#include <algorithm>

namespace troupe {

class memory_queue {
public:
  memory_queue(session_plans& plans, installations& installed) : plans_(plans), installed_(installed) {}

  /// Returns an arena slot for an execution of `bound`, on which devices have it from now on. If there is no memory for
  /// it: lets go of bound plans that no run uses; if that is not enough, returns nullopt.
  std::optional<uint32_t> take_slot(const bound_plan_ptr& bound, const planned_model_ptr& planned);
  /// Forgets a bound plan, which is retired when no run uses it.
  void let_go(uint64_t bound_plan);
  /// Retires bound plans that have left the cache.
  void retire_evicted() { installed_.evict(plans_.bound().take_evicted()); }
  /// Lets go of bound plans that no run uses while other sessions lack memory; gives back what is freed. Looks only if
  /// something has changed since the last call: it asks every device, of which there may be thousands.
  void share();

  /// Returns whether others are first: runs that wait, or sessions that lack memory which is held here.
  bool must_wait() const { return !waiting_.empty() || installed_.others_lack(); }
  void wait(const run_request_ptr& request);
  /// Takes a run out if it waits: those after it may have room if it had none.
  void forget(const run_request_ptr& request);
  /// Called when memory may have become free: an execution of `ended` has left the book. Null: others freed it.
  void freed(const run_request_ptr& ended);
  /// Returns whether it has, since runs were woken last.
  bool wakes() const { return wakes_; }
  /// Restarts runs that wait for memory (`begin(request)`), in arrival order, until one must wait again. A run waits on
  /// if only its own executions have ended and there are others (`others_in_flight(request)`), which hold what it waits
  /// for. None begins while other sessions lack memory: they are first.
  template <class InFlight, class Begin>
  void wake(InFlight&& others_in_flight, Begin&& begin) {
    wakes_ = false;
    const run_request_ptr ended = std::exchange(ended_, nullptr); // not kept longer: it holds inputs
    if (installed_.others_lack())
      return;
    const std::vector<run_request_ptr> queue = std::exchange(waiting_, {});
    auto next = queue.begin();
    for (bool waits = false; next != queue.end() && !waits; ++next)
      if (*next == ended && others_in_flight(ended)) {
        waiting_.push_back(*next);
      } else {
        begin(*next);
        waits = is_waiting(*next);
      }
    waiting_.insert(waiting_.end(), next, queue.end());
  }

private:
  bool is_waiting(const run_request_ptr& request) const {
    return std::ranges::find(waiting_, request) != waiting_.end();
  }

  session_plans& plans_;
  installations& installed_;
  std::vector<run_request_ptr> waiting_;
  bool wakes_ = false;    // memory has become free since runs were woken last …
  run_request_ptr ended_; // … by the end of executions of this run alone; null: by others too
  bool moved_ = true;     // who waits for memory, here or elsewhere, may be others than when it was shared last
};

} // namespace troupe
