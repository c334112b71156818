// How runs end before their end: failed chunks, lost devices, deadlines, cancellation.
#include "actors/coordinator.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <array>

namespace troupe::actors {
namespace {

/// How often a run is planned again because a device had less memory than it claimed.
constexpr int max_shortages = 8;

} // namespace

void coordinator_state::end_early(execution& e, const failure& why) {
  const auto request = run_request_ptr(e.request()); // the execution ends here
  request->result.fail({why.code, position_of(e) + why.message});
  end_all(request);
}

void coordinator_state::end_all(const run_request_ptr& request) {
  const auto ids = executions_where([&](const execution& e) { return !e.stopped() && e.request() == request; });
  for (execution_id id : ids)
    executions_.at(id)->abort();
  std::erase_if(controls_, [&](const auto& entry) {
    execution& e = *executions_.at(entry.first.execution);
    return e.request() == request && e.end_chunk(entry.first.chunk);
  });
  for (execution_id id : ids)
    drain(*executions_.at(id));
}

void coordinator_state::cancel(uint64_t ticket) {
  const failure why{errc::cancelled, "the run was cancelled"};
  if (end_fetching(ticket, why) || end_waiting(ticket, why))
    return;
  for (execution_id id : executions_where(
           [&](const execution& e) { return !e.purpose() && !e.stopped() && e.request()->ticket == ticket; }))
    end_early(*executions_.at(id), why);
}

std::optional<device_index> coordinator_state::index_in(const planned_model& planned, size_t device) {
  const auto found = std::find(planned.devices.begin(), planned.devices.end(), device);
  const auto index = static_cast<device_index>(found - planned.devices.begin());
  if (found == planned.devices.end() || !planned.used[index])
    return std::nullopt;
  return index;
}

void coordinator_state::lose_device(size_t device, const std::string& why) {
  device_state& lost = devices_[device];
  if (!lost.lost_because.empty())
    return;
  lost.lost_because = why.empty() ? "for an unknown reason" : why;
  lost.handle.health->lost = true;
  lost.installing.clear();
  self_->send_exit(lost.handle.actor, caf::exit_reason::kill);
  options_.plans->remove_device(device);
  retire_evicted();
  std::vector<run_request_ptr> again = take_fetching_from(device);
  for (execution_id id : executions_where([&](const execution& e) { return runs_on(*e.planned(), device); })) {
    execution& e = *executions_.at(id);
    if (const auto index = index_in(*e.planned(), device))
      e.forget_device(*index);
    if (!e.stopped() && std::find(again.begin(), again.end(), e.request()) == again.end()) {
      e.request()->stats.lost_devices.push_back(lost.handle.info.name);
      again.push_back(e.request());
    }
    if (e.stopped())
      drain(e);
  }
  for (const run_request_ptr& request : again)
    start_over(request);
}

void coordinator_state::start_over(const run_request_ptr& request) {
  end_all(request);
  start_attempt(request);
}

bool coordinator_state::make_room(size_t device, const bound_plan_ptr& bound, const failure& why) {
  if (why.code != errc::out_of_memory)
    return false;
  const std::string note =
      fmt::format("device '{}' had less memory than it claims: {}", devices_[device].handle.info.name, why.message);
  const bool idle = std::any_of(installations_.begin(), installations_.end(),
                                [](const auto& entry) { return entry.second.in_use == 0; });
  std::vector<run_request_ptr> again;
  int64_t needed = 0; // by a run that does not get it by letting idle plans go
  for (execution_id id :
       executions_where([&](const execution& e) { return !e.stopped() && e.bound() && e.bound()->id == bound->id; })) {
    const auto found = executions_.find(id);
    if (found == executions_.end() || found->second->stopped())
      continue; // it ended with another execution of its run
    execution& e = *found->second;
    const run_request_ptr request = e.request();
    request->shortage = note;
    if (++request->shortages > max_shortages) {
      end_early(e, {why.code, note});
      continue;
    }
    if (request->shortages > 1 || !idle)
      needed = std::max(needed, memory_of(request)[*index_in(*e.planned(), device)]);
    again.push_back(request);
    end_all(request);
  }
  if (needed > 0)
    options_.plans->lower_memory(device, needed);
  else
    options_.plans->forget_bound_plans();
  retire_evicted();
  for (const run_request_ptr& request : again)
    start_attempt(request);
  return true;
}

void coordinator_state::plan_exactly(const bound_plan_ptr& bound, const failure& why) {
  for (execution_id id :
       executions_where([&](const execution& e) { return !e.stopped() && e.bound() && e.bound()->id == bound->id; })) {
    const auto found = executions_.find(id);
    if (found == executions_.end() || found->second->stopped())
      continue; // it ended with another execution of its run
    execution& e = *found->second;
    bool planned = false;
    const failure failed = capture([&] { planned = options_.plans->plan_exactly(e.prepared()); });
    if (planned)
      start_over(run_request_ptr(e.request()));
    else
      end_early(e, failed.failed() ? failed : why);
  }
  options_.plans->forget_bound_plans(std::array{bound->id});
  retire_evicted();
}

void coordinator_state::start_over_spilled(execution& e, const memory_shortage& why) {
  const auto request = run_request_ptr(e.request()); // the execution ends here
  if (!options_.plans->is_current(*e.planned()))
    return start_over(request);
  options_.plans->spill(e.prepared(), why);
  retire_evicted();
  const std::optional<chunk_place> purpose = e.purpose();
  e.abort();
  drain(e);
  if (purpose)
    self_->send(self_, continue_control{purpose->execution, purpose->chunk});
  else
    start_attempt(request);
}

bool coordinator_state::wait_for_memory(const execution& e) {
  const auto request = run_request_ptr(e.request());
  if (!others_in_flight(request))
    return false;
  end_all(request);
  waiting_.push_back(request);
  return true;
}

bool coordinator_state::others_in_flight(const run_request_ptr& request) const {
  return std::any_of(executions_.begin(), executions_.end(),
                     [&](const auto& entry) { return entry.second->request() != request; });
}

void coordinator_state::resume_waiting(const run_request_ptr& ended) {
  const std::vector<run_request_ptr> queue = std::exchange(waiting_, {});
  auto next = queue.begin();
  for (bool waits = false; next != queue.end() && !waits; ++next)
    if (*next == ended && others_in_flight(ended)) {
      waiting_.push_back(*next);
    } else {
      start_attempt(*next);
      waits = !waiting_.empty() && waiting_.back() == *next;
    }
  waiting_.insert(waiting_.end(), next, queue.end());
}

bool coordinator_state::end_waiting(uint64_t ticket, const failure& why) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const run_request_ptr& request) { return request->ticket == ticket; });
  if (found == waiting_.end())
    return false;
  (*found)->result.fail(why);
  waiting_.erase(found);
  resume_waiting(nullptr);
  return true;
}

void coordinator_state::notice_lost_devices() {
  for (size_t d = 0; d < devices_.size(); ++d)
    if (devices_[d].handle.health->lost)
      lose_device(d, "another session lost it");
}

void coordinator_state::check_device_left() const {
  std::string causes;
  for (const device_state& device : devices_) {
    if (device.lost_because.empty())
      return;
    causes += fmt::format("device '{}' is lost: {}; ", device.handle.info.name, device.lost_because);
  }
  fail(errc::device_lost, "{}no device is left", causes);
}

void coordinator_state::on_down(const caf::down_msg& down) {
  for (size_t d = 0; d < devices_.size(); ++d)
    if (devices_[d].handle.actor.address() == down.source)
      lose_device(d, "its actor has ended");
}

coordinator_state::clock::time_point coordinator_state::now() const {
  return self_->clock().now();
}

void coordinator_state::arm_tick(clock::time_point at) {
  if (next_tick_ && *next_tick_ <= at)
    return;
  next_tick_ = at;
  self_->delayed_send(self_, std::max<std::chrono::nanoseconds>(at - now(), std::chrono::nanoseconds(0)), tick{});
}

void coordinator_state::on_tick() {
  const auto time = now();
  if (next_tick_ && time >= *next_tick_)
    next_tick_.reset();
  check_deadlines(time);
  if (options_.device_timeout.count() > 0)
    check_devices(time);
  watch_devices();
}

void coordinator_state::watch_devices() {
  if (options_.device_timeout.count() > 0 && !(executions_.empty() && fetching_.empty()))
    arm_tick(now() + look_interval(options_.device_timeout));
}

void coordinator_state::check_deadlines(clock::time_point time) {
  const auto is_late = [&](const run_request& r) { return r.deadline && *r.deadline <= time; };
  const auto lateness = [](const run_request& r) {
    return failure{errc::timeout, fmt::format("the run did not end within {} ms", r.options.timeout.count())};
  };
  for (execution_id id :
       executions_where([&](const execution& e) { return !e.purpose() && !e.stopped() && is_late(*e.request()); }))
    end_early(*executions_.at(id), lateness(*executions_.at(id)->request()));
  std::vector<run_request_ptr> waiting = waiting_;
  for (const auto& [ticket, f] : fetching_)
    waiting.push_back(f.request);
  for (const run_request_ptr& r : waiting)
    if (is_late(*r))
      end_fetching(r->ticket, lateness(*r)) || end_waiting(r->ticket, lateness(*r));
    else if (r->deadline)
      arm_tick(*r->deadline);
  for (const auto& [id, e] : executions_)
    if (!e->stopped() && e->request()->deadline)
      arm_tick(*e->request()->deadline);
}

bool coordinator_state::has_work(size_t device) const {
  if (!devices_[device].installing.empty())
    return true;
  for (const auto& [ticket, f] : fetching_)
    for (const auto& [input, home] : f.awaited)
      if (home == device)
        return true;
  return std::any_of(executions_.begin(), executions_.end(), [&](const auto& entry) {
    const auto index = index_in(*entry.second->planned(), device);
    return index && entry.second->on_device(*index);
  });
}

void coordinator_state::check_devices(clock::time_point time) {
  for (size_t d = 0; d < devices_.size(); ++d) {
    device_state& device = devices_[d];
    if (!device.lost_because.empty())
      continue;
    if (device.watch.is_silent(*device.handle.health, has_work(d), time, options_.device_timeout))
      lose_device(d, fmt::format("it did not answer for {} ms", options_.device_timeout.count()));
  }
}

} // namespace troupe::actors
