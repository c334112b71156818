#include "run/memory_queue.hpp"

#include <algorithm>

namespace troupe {

std::optional<uint32_t> memory_queue::take_slot(const bound_plan_ptr& bound, const planned_model_ptr& planned) {
  retire_evicted();
  if (const auto slot = installed_.take_slot(bound, planned))
    return slot;
  for (uint64_t idle : installed_.idle(bound->id)) {
    // One at a time: each plan that is let go has to be installed anew when a run uses it again.
    let_go(idle);
    if (const auto slot = installed_.take_slot(bound, planned))
      return slot;
  }
  return std::nullopt;
}

void memory_queue::let_go(uint64_t bound_plan) {
  plans_.bound().forget(bound_plan);
  retire_evicted();
}

void memory_queue::share() {
  if (const bool here = installed_.take_moved(); !std::exchange(moved_, false) && !here)
    return;
  if (waiting_.empty())
    // A place in a ledger's queue that no run of this session needs would hold up the other sessions.
    installed_.withdraw();
  while (installed_.others_lack()) {
    const std::vector<uint64_t> idle = installed_.idle();
    if (idle.empty())
      break; // the rest when it has ended
    let_go(idle.front());
  }
  installed_.give_back();
}

void memory_queue::wait(const run_request_ptr& request) {
  moved_ = true;
  waiting_.push_back(request);
}

void memory_queue::forget(const run_request_ptr& request) {
  if (std::erase(waiting_, request) > 0)
    freed(nullptr);
}

void memory_queue::freed(const run_request_ptr& ended) {
  moved_ = true;
  if (waiting_.empty())
    return;
  ended_ = wakes_ && ended_ != ended ? nullptr : ended;
  wakes_ = true;
}

} // namespace troupe
