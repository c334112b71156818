#include "actors/coordinator.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace troupe::actors {

coordinator_ref::behavior_type coordinator_state::behavior(pointer self, coordinator_options options) {
  self_ = self;
  options_ = std::move(options);
  for (const device_handle& handle : options_.devices) {
    devices_.push_back({.handle = handle});
    self->monitor(handle.actor);
  }
  self->set_down_handler([this](caf::down_msg& down) { on_down(down); });
  return {
      [this](const plan_installed& answer) { on_installed(answer); },
      [this](chunk_ended& ended) { on_chunk(ended); },
      [this](tensor_fetched& answer) { on_fetched(answer); },
      [this](const run& message) { start_run(message.request); },
      [this](const cancel_run& message) { cancel(message.ticket); },
      [this](const plan_query_message& message) { answer_query(*message.query); },
      [this](const session_query_message& message) { message.query->result.answer(options_.plans->stats()); },
      [this](close_session) {
        closing_ = true;
        quit_if_idle();
      },
      [this](tick) { on_tick(); },
      [this](const continue_control& m) {
        go_on({m.execution, m.chunk});
      },
  };
}

coordinator_ref::behavior_type coordinator(coordinator_state::pointer self, coordinator_options options) {
  return self->state.behavior(self, std::move(options));
}

void coordinator_state::start_run(const run_request_ptr& request) {
  options_.plans->count_run();
  const failure why = capture([&] {
    check_given_once(*request);
    if (const auto limit = time_limit(request->options.timeout, "run_options::timeout")) {
      request->deadline = now() + *limit;
      arm_tick(*request->deadline);
    }
  });
  if (why.failed())
    return request->result.fail(why);
  notice_lost_devices();
  if (waiting_.empty())
    start_attempt(request);
  else
    waiting_.push_back(request); // a small run does not pass a large one for ever
}

void coordinator_state::start_attempt(const run_request_ptr& request) {
  if (request->cancelled)
    return request->result.fail({errc::cancelled, "the run was cancelled"});
  execution* e = nullptr;
  failure why = capture([&] {
    check_device_left();
    check_request(*request);
    if (await_host_copies(request, options_.plans->host_inputs()))
      return;
    prepared_run prepared = options_.plans->prepare({request->inputs, request->options.device_inputs});
    if (await_host_copies(request, inputs_wanted_on_host(*request, *prepared.source)))
      return;
    auto fresh = std::make_unique<execution>(request, std::move(prepared), options_.completion);
    e = fresh.get();
    executions_.emplace(e->id(), std::move(fresh));
    start_segment(*e, 0);
  });
  if (why.code == errc::out_of_memory && request->shortages > 0) {
    why.message = fmt::format("{}; {}", request->shortage, why.message);
    options_.plans->restore_memory(); // the next run may find more
  }
  if (why.failed())
    e ? end_early(*e, why) : request->result.fail(why);
  if (!e)
    close_when_idle();
  watch_devices();
}

void coordinator_state::start_segment(execution& e, uint32_t segment) {
  bound_plan_ptr bound;
  try {
    bound = segment == 0 ? e.prepared().bound : options_.plans->bind(e.prepared(), segment);
  } catch (const memory_shortage& why) {
    return start_over_spilled(e, why);
  }
  retire_evicted();
  if (!reserve(e, *bound))
    return;
  installation& i = install(bound, e.planned());
  e.start(bound, take_slot(i));
  dispatch(e);
  advance(e); // where everything is known already
}

void coordinator_state::dispatch(execution& e) {
  const plan& p = e.source();
  batches_.resize(std::max(batches_.size(), p.devices.size()));
  const failure why = capture([&] {
    while (std::optional<chunk_work> work = e.take())
      batches_[p.chunks[work->chunk].device].works.push_back(std::move(*work));
  });
  // What was taken counts as sent: it goes out even where the run ends here, and its answers end the execution.
  for (device_index d = 0; d < p.devices.size(); ++d) {
    if (batches_[d].works.empty())
      continue;
    run_chunks batch = std::exchange(batches_[d], {});
    if (p.devices[d].kind == device_kind::control)
      start_control(e, std::move(batch.works.front()));
    else
      self_->send(devices_[e.planned()->devices[d]].handle.actor, std::move(batch));
  }
  if (why.failed())
    throw error(why.code, why.message);
}

void coordinator_state::advance(execution& e) {
  if (e.outputs_complete())
    return finish(e);
  if (!e.segment_finished())
    return;
  const uint32_t next = e.bound()->segment + 1;
  leave_segment(e);
  expects(next < e.source().segment_count, "every chunk is complete, but an output is missing");
  start_segment(e, next);
}

void coordinator_state::on_chunk(chunk_ended& ended) {
  const auto found = executions_.find(ended.execution);
  if (found == executions_.end() || !found->second->end_chunk(ended.chunk))
    return; // of an attempt that is over, or spurious
  execution& e = *found->second;
  const size_t device = e.planned()->devices[e.source().chunks[ended.chunk].device];
  if (!ended.result.ok() && ended.result.code == errc::device_lost) {
    lose_device(device, ended.result.message);
    return;
  }
  if (e.stopped())
    return drain(e);
  if (!ended.result.ok() && ended.result.code == errc::out_of_memory && wait_for_memory(e))
    return;
  if (!ended.result.ok() && make_room(device, bound_plan_ptr(e.bound()), {ended.result.code, ended.result.message}))
    return;
  if (!ended.result.ok())
    return end_early(e,
                     {ended.result.code, fmt::format("device '{}' failed in {}: {}", devices_[device].handle.info.name,
                                                     e.describe_chunk(ended.chunk), ended.result.message)});
  const failure why = capture([&] {
    e.complete(ended.chunk, ended.result);
    dispatch(e);
    advance(e);
  });
  if (why.failed())
    end_early(e, {why.code, fmt::format("{} (after {} on device '{}')", why.message, e.describe_chunk(ended.chunk),
                                        devices_[device].handle.info.name)});
}

void coordinator_state::finish(execution& e) {
  if (e.purpose())
    return finish_body(e);
  const run_request_ptr kept = e.request();
  run_request& request = *kept;
  run_result result;
  result.outputs = e.collect_outputs();
  result.kept = e.collect_kept();
  e.add_stats();
  request.stats.total_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - request.started).count();
  result.stats = request.stats;
  result.trace = e.take_trace();
  request.result.answer(std::move(result));
  e.stop();
  end_all(kept);
  drain(e);
}

void coordinator_state::drain(execution& e) {
  if (!e.drained())
    return;
  leave_segment(e);
  if (e.aborted())
    for (size_t d = 0; d < e.planned()->devices.size(); ++d)
      if (const device_state& device = devices_[e.planned()->devices[d]]; e.planned()->used[d])
        self_->send(device.handle.actor, end_execution{e.id()});
  const run_request_ptr request = e.request();
  executions_.erase(e.id());
  resume_waiting(request);
  close_when_idle();
}

void coordinator_state::close_when_idle() {
  if (closing_)
    self_->send(self_, close_session{});
}

void coordinator_state::quit_if_idle() {
  if (!executions_.empty() || !fetching_.empty())
    return;
  while (!installations_.empty())
    retire(installations_.begin()->first);
  self_->quit();
}

void coordinator_state::answer_query(plan_query& query) {
  const failure why = capture([&] {
    notice_lost_devices();
    check_device_left();
    query.result.answer(options_.plans->prepare({query.inputs, {}}).bound);
    retire_evicted();
  });
  if (why.failed())
    query.result.fail(why);
}

} // namespace troupe::actors
