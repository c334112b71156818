#include "run/run_book.hpp"

#include "base/shared_work.hpp"

namespace troupe {

void run_book::answer(run_request& request, run_result result, failure why) {
  expects(!std::exchange(request.answered, true), "a run was answered twice");
  commands_.push_back(run_answer{request.ticket, std::move(result), std::move(why)});
  runs_.erase(request.ticket);
}

void run_book::end_early(const execution& e, const failure& why) {
  const auto request = run_request_ptr(e.request()); // the execution ends here
  // Before the executions end: the position is found through those around the body.
  answer(*request, {}, {why.code, position_of(e) + why.message});
  end_all(request);
}

void run_book::end_all(const run_request_ptr& request) {
  const auto ids = where([&](const execution& e) { return !e.stopped() && e.request() == request; });
  for (execution_id id : ids) {
    execution& e = at(id);
    e.abort();
    tell_stopped(e);
    controls_.forget(e);
  }
  for (execution_id id : ids)
    drain(at(id));
}

void run_book::tell_stopped(const execution& e) {
  const plan& p = e.source();
  for (device_index d = 0; d < p.devices.size(); ++d)
    if (p.devices[d].kind != device_kind::control && e.in_flight().on_device(d))
      commands_.push_back(device_order{e.planned()->devices[d], stop_execution{e.id()}});
}

std::string run_book::position_of(const execution& e) const {
  std::string text;
  for (std::optional<chunk_place> place = e.purpose(); place;) {
    const execution& around = at(place->execution);
    text.insert(0, controls_.position(around, place->chunk) + ": ");
    place = around.purpose();
  }
  return text;
}

execution& run_book::add(std::unique_ptr<execution> begun) {
  const execution_id id = begun->id();
  return *executions_.emplace(id, std::move(begun)).first->second;
}

execution* run_book::find(execution_id id) const {
  const auto found = executions_.find(id);
  return found == executions_.end() ? nullptr : found->second.get();
}

execution* run_book::find_running(execution_id id) const {
  execution* const found = find(id);
  return found && !found->stopped() ? found : nullptr;
}

std::vector<int64_t> run_book::memory_of(const run_request_ptr& request) const {
  std::vector<int64_t> bytes;
  for (const auto& [id, e] : executions_) {
    if (e->request() != request || !e->bound())
      continue;
    bytes.resize(e->planned()->devices.size());
    for (device_index d = 0; d < bytes.size(); ++d)
      bytes[d] += bytes_needed(*e->bound()->layout, d);
  }
  return bytes;
}

void run_book::leave_segment(execution& e) {
  if (!e.bound())
    return;
  const uint64_t id = e.bound()->id;
  e.leave_segment();
  installed_.leave(id, e.slot());
}

void run_book::drain(execution& e) {
  if (!e.in_flight().empty())
    return;
  leave_segment(e);
  // Only after the last answer: until then the device drops later chunks of the execution because it remembers the
  // failure.
  if (e.aborted())
    for (size_t d = 0; d < e.planned()->devices.size(); ++d)
      if (e.planned()->used[d])
        commands_.push_back(device_order{e.planned()->devices[d], end_execution{e.id()}});
  const run_request_ptr request = e.request();
  ended_ = std::move(executions_.extract(e.id()).mapped());
  memory_.freed(request);
}

void run_book::free_ended() {
  // This may be the caller's thread. It is freed here if there is no memory for handing it over, or if it has handed
  // its values on: what a thread has allocated it finds again soonest where it has freed it itself.
  if (ended_ && !ended_->values().has_handed_on())
    capture([&] { let_go(std::move(ended_)); });
  ended_ = nullptr;
}

} // namespace troupe
