// How runs end before their end: failed installs, lost devices, deadlines, cancellation.
#include "run/session_machine.hpp"

#include "base/elapsed.hpp"

#include <algorithm>

namespace troupe {

void session_machine::on(size_t device, const plan_installed& answer) {
  installation* const i = installed_.answered(device, answer);
  if (!i)
    return;
  if (i->pending > 0 && --i->pending == 0)
    plans_->add_plan_ms(milliseconds_since(i->started));
  if (!answer.why.failed())
    return;
  const auto bound = bound_plan_ptr(i->bound); // the installation may end here
  if (answer.why.code == errc::device_lost)
    return lose_device(device, answer.why.message);
  if (make_room(device, bound, answer.why))
    return;
  const failure why{answer.why.code, fmt::format("device '{}' cannot take its part of the plan: {}",
                                                 devices_[device].name, answer.why.message)};
  if (why.code == errc::unsupported)
    return plan_exactly(bound, why);
  plans_->forget_bound_plans();
  for_each_running(bound->id, [&](execution& e) { end_early(e, why); });
  retire_evicted();
}

void session_machine::end_early(execution& e, const failure& why) {
  const auto request = run_request_ptr(e.request()); // the execution ends here
  answer(*request, {}, {why.code, position_of(e) + why.message});
  end_all(request);
}

void session_machine::end_all(const run_request_ptr& request) {
  const auto ids = executions_where([&](const execution& e) { return !e.stopped() && e.request() == request; });
  for (execution_id id : ids) {
    executions_.at(id)->abort();
    tell_stopped(*executions_.at(id));
  }
  std::erase_if(controls_, [&](const auto& entry) {
    execution& e = *executions_.at(entry.first.execution);
    return e.request() == request && e.end_chunk(entry.first.chunk);
  });
  for (execution_id id : ids)
    drain(*executions_.at(id));
}

void session_machine::tell_stopped(const execution& e) {
  const plan& p = e.source();
  for (device_index d = 0; d < p.devices.size(); ++d)
    if (p.devices[d].kind != device_kind::control && e.on_device(d))
      send(e.planned()->devices[d], stop_execution{e.id()});
}

void session_machine::cancel(uint64_t ticket) {
  const failure why{errc::cancelled, "the run was cancelled"};
  if (end_fetching(ticket, why) || end_waiting(ticket, why))
    return;
  for (const run_request_ptr& r : runs_that_wait_for_plans())
    if (r->ticket == ticket)
      answer(*r, {}, why);
  for (execution_id id : executions_where(
           [&](const execution& e) { return !e.purpose() && !e.stopped() && e.request()->ticket == ticket; }))
    end_early(*executions_.at(id), why);
}

std::optional<device_index> session_machine::index_in(const planned_model& planned, size_t device) {
  const auto found = std::find(planned.devices.begin(), planned.devices.end(), device);
  const auto index = static_cast<device_index>(found - planned.devices.begin());
  if (found == planned.devices.end() || !planned.used[index])
    return std::nullopt;
  return index;
}

void session_machine::lose_device(size_t device, const std::string& why) {
  device_state& lost = devices_[device];
  if (!lost.lost_because.empty())
    return;
  lost.lost_because = why.empty() ? "for an unknown reason" : why;
  leaving_ -= !lost.leaves_because.empty() && !lost.let_go ? 1 : 0;
  installed_.forget_device(device);
  commands_.push_back(abandon_device{device});
  plans_->remove_device(device);
  retire_evicted();
  std::vector<run_request_ptr> again = take_fetching_from(device);
  for (execution_id id : executions_where([&](const execution& e) { return runs_on(*e.planned(), device); })) {
    execution& e = *executions_.at(id);
    if (const auto index = index_in(*e.planned(), device))
      e.forget_device(*index);
    if (!e.stopped() && std::find(again.begin(), again.end(), e.request()) == again.end()) {
      e.request()->stats.lost_devices.push_back(lost.name);
      again.push_back(e.request());
    }
    if (e.stopped())
      drain(e);
  }
  for (const run_request_ptr& request : again)
    start_over(request);
}

void session_machine::start_over(const run_request_ptr& request) {
  end_all(request);
  start_attempt(request);
}

void session_machine::plan_exactly(const bound_plan_ptr& bound, const failure& why) {
  for_each_running(bound->id, [&](execution& e) {
    if (plans_->plan_exactly(e.prepared()))
      start_over(run_request_ptr(e.request()));
    else
      end_early(e, why);
  });
  let_go(bound->id);
}

void session_machine::tick() {
  const auto is_late = [&](const run_request& r) { return r.deadline && *r.deadline <= now_; };
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
  for (const run_request_ptr& r : runs_that_wait_for_plans())
    if (is_late(*r))
      answer(*r, {}, lateness(*r));
}

std::optional<run_time> session_machine::next_deadline() const {
  std::optional<run_time> next;
  const auto add = [&](const run_request& r) {
    if (r.deadline && (!next || *r.deadline < *next))
      next = r.deadline;
  };
  for (const run_request_ptr& r : waiting_)
    add(*r);
  for (const run_request_ptr& r : runs_that_wait_for_plans())
    add(*r);
  for (const auto& [ticket, f] : fetching_)
    add(*f.request);
  for (const auto& [id, e] : executions_)
    if (!e->stopped())
      add(*e->request());
  return next;
}

} // namespace troupe
