// Memory of devices: limits over all that a session has there, plans that spill, runs that wait.
#include "run/session_machine.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// How often a run is planned again because a device had less memory than it claimed.
constexpr int max_shortages = 8;

} // namespace

std::optional<uint32_t> session_machine::take_slot(const execution& e, const bound_plan_ptr& bound) {
  if (const auto slot = installed_.take_slot(bound, e.planned()))
    return slot;
  for (uint64_t idle : installed_.idle(bound->id)) {
    let_go(idle);
    if (const auto slot = installed_.take_slot(bound, e.planned()))
      return slot;
  }
  const auto request = run_request_ptr(e.request()); // the execution ends here, if it waits
  if (!others_in_flight(request) && !installed_.waits())
    return installed_.take_slot_anyway(bound, e.planned()); // nobody could give back any: the device has the last word
  wait(request);
  return std::nullopt;
}

void session_machine::share_memory() {
  if (waiting_.empty())
    installed_.withdraw();
  while (installed_.others_lack()) {
    const std::vector<uint64_t> idle = installed_.idle();
    if (idle.empty())
      break; // the rest when it has ended
    let_go(idle.front());
  }
  installed_.give_back();
}

void session_machine::on_memory_changed() {
  resume_waiting(nullptr);
}

bool session_machine::make_room(size_t device, const bound_plan_ptr& bound, const failure& why) {
  if (why.code != errc::out_of_memory)
    return false;
  const std::string note =
      fmt::format("device '{}' had less memory than it claims: {}", devices_[device].name, why.message);
  const bool idle = !installed_.idle().empty();
  std::vector<run_request_ptr> again;
  int64_t needed = 0; // by a run that does not get it by letting idle plans go
  for_each_running(bound->id, [&](execution& e) {
    const run_request_ptr request = e.request();
    request->shortage = note;
    if (++request->shortages > max_shortages)
      return end_early(e, {why.code, note});
    if (request->shortages > 1 || !idle)
      needed = std::max(needed, memory_of(request)[*index_in(*e.planned(), device)]);
    again.push_back(request);
    end_all(request);
  });
  if (needed > 0)
    plans_->lower_memory(device, needed);
  else
    plans_->forget_bound_plans();
  retire_evicted();
  for (const run_request_ptr& request : again)
    start_attempt(request);
  return true;
}

void session_machine::start_over_spilled(execution& e, const memory_shortage& why) {
  const auto request = run_request_ptr(e.request()); // the execution ends here
  if (!plans_->is_current(*e.planned()))
    return start_over(request);
  plans_->spill(e.prepared(), why);
  retire_evicted();
  const std::optional<chunk_place> purpose = e.purpose();
  e.abort();
  drain(e);
  if (purpose)
    commands_.push_back(continue_control{*purpose});
  else
    start_attempt(request);
}

bool session_machine::wait_for_memory(const execution& e) {
  const auto request = run_request_ptr(e.request());
  if (!others_in_flight(request))
    return false;
  wait(request);
  return true;
}

void session_machine::wait(const run_request_ptr& request) {
  memory_moved_ = true;
  end_all(request);
  waiting_.push_back(request);
}

bool session_machine::others_in_flight(const run_request_ptr& request) const {
  return std::any_of(executions_.begin(), executions_.end(),
                     [&](const auto& entry) { return entry.second->request() != request; });
}

void session_machine::resume_waiting(const run_request_ptr& ended) {
  memory_moved_ = true;
  if (installed_.others_lack())
    return; // they are first
  const std::vector<run_request_ptr> queue = std::exchange(waiting_, {});
  auto next = queue.begin();
  for (bool waits = false; next != queue.end() && !waits; ++next)
    if (*next == ended && others_in_flight(ended)) {
      waiting_.push_back(*next);
    } else {
      start_attempt(*next);
      waits = std::find(waiting_.begin(), waiting_.end(), *next) != waiting_.end();
    }
  waiting_.insert(waiting_.end(), next, queue.end());
}

bool session_machine::end_waiting(uint64_t ticket, const failure& why) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const run_request_ptr& request) { return request->ticket == ticket; });
  if (found == waiting_.end())
    return false;
  answer(**found, {}, why);
  waiting_.erase(found);
  resume_waiting(nullptr);
  return true;
}

} // namespace troupe
