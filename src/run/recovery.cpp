#include "run/recovery.hpp"

#include "base/elapsed.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// How often a run is planned again because a device had less memory than it claimed.
constexpr int max_shortages = 8;

} // namespace

void recovery::chunk_failed(execution& e, size_t device, const chunk_ended& ended) {
  const failure why{ended.result.code, ended.result.message};
  if (why.code == errc::out_of_memory && s_.book.others_in_flight(e.request())) // whose memory comes back
    return wait(run_request_ptr(e.request()));
  if (make_room(device, bound_plan_ptr(e.bound()), why))
    return;
  s_.book.end_early(e, {why.code, fmt::format("device '{}' failed in {}: {}", s_.devices.name(device),
                                              describe_chunk(e.source(), ended.chunk), why.message)});
}

void recovery::on(size_t device, const plan_installed& answer) {
  installation* const i = s_.installed.answered(device, answer);
  if (!i)
    return;
  if (i->pending > 0 && --i->pending == 0)
    s_.plans->counters().plan_ms += milliseconds_since(i->started);
  if (!answer.why.failed())
    return;
  const auto bound = bound_plan_ptr(i->bound); // the installation may end here
  if (answer.why.code == errc::device_lost)
    return lose_device(device, answer.why.message);
  if (make_room(device, bound, answer.why))
    return;
  const failure why{answer.why.code, fmt::format("device '{}' cannot take its part of the plan: {}",
                                                 s_.devices.name(device), answer.why.message)};
  if (why.code == errc::unsupported)
    return plan_exactly(bound, why);
  s_.plans->bound().forget_all();
  s_.book.for_each_running(bound->id, [&](const execution& e) { s_.book.end_early(e, why); });
}

bool recovery::make_room(size_t device, const bound_plan_ptr& bound, const failure& why) {
  if (why.code != errc::out_of_memory)
    return false;
  const std::string note =
      fmt::format("device '{}' had less memory than it claims: {}", s_.devices.name(device), why.message);
  const bool idle = !s_.installed.idle().empty();
  int64_t needed = 0; // by a run that does not get it by letting idle plans go
  s_.book.for_each_running(bound->id, [&](execution& e) {
    const run_request_ptr request = e.request();
    request->shortage = note;
    if (++request->shortages > max_shortages)
      return s_.book.end_early(e, {why.code, note});
    if (request->shortages > 1 || !idle)
      needed = std::max(needed, s_.book.memory_of(request)[*index_in(*e.planned(), device)]);
    start_over(request);
  });
  if (needed > 0)
    s_.plans->lower_memory(device, needed);
  else
    s_.plans->bound().forget_all();
  return true;
}

void recovery::plan_exactly(const bound_plan_ptr& bound, const failure& why) {
  s_.book.for_each_running(bound->id, [&](execution& e) {
    if (s_.plans->replaced().plan_exactly(e.prepared()))
      start_over(run_request_ptr(e.request()));
    else
      s_.book.end_early(e, why);
  });
  s_.memory.let_go(bound->id);
}

void recovery::lose_device(size_t device, const std::string& why) {
  if (!s_.devices.lose(device, why))
    return;
  s_.installed.forget_device(device);
  s_.commands.push_back(abandon_device{device});
  std::vector<run_request_ptr> again = s_.copies.forget_device(device);
  for (execution_id id : s_.book.where([&](const execution& e) { return runs_on(*e.planned(), device); })) {
    execution& e = s_.book.at(id);
    if (const auto index = index_in(*e.planned(), device))
      // The lost device answers no more. Chunks on other devices are still answered, and keep the arena slot until
      // then.
      e.in_flight().forget(*index);
    if (e.stopped()) {
      s_.book.drain(e);
    } else if (std::ranges::find(again, e.request()) == again.end()) {
      e.request()->stats.lost_devices.push_back(s_.devices.name(device));
      again.push_back(e.request());
    }
  }
  // Not in the loop above: starting a run over takes its other executions out of the book, and the loop has their ids.
  for (const run_request_ptr& request : again)
    start_over(request);
}

void recovery::wait(const run_request_ptr& request) {
  s_.book.end_all(request);
  s_.memory.wait(request);
}

void recovery::start_over(const run_request_ptr& request) {
  s_.book.end_all(request);
  s_.todo.add({begin_run{request, false}, {}});
}

void recovery::start_over_spilled(execution& e, const memory_shortage& why) {
  const auto request = run_request_ptr(e.request()); // the execution ends here
  if (!s_.plans->devices().are_of(*e.planned()))
    return start_over(request);
  s_.plans->replaced().spill(e.prepared(), why);
  const std::optional<chunk_place> purpose = e.purpose();
  e.abort();
  s_.book.drain(e);
  if (purpose)
    // The control-flow chunk asks for its body again. That is the same iteration, since no outputs of it have been
    // taken.
    s_.commands.push_back(continue_control{*purpose});
  else
    s_.todo.add({begin_run{request, false}, {}});
}

} // namespace troupe
