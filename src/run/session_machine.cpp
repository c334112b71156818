#include "run/session_machine.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Throws if an input is given twice. Later it may be there twice: host copies are kept beside.
void check_given_once(const run_request& request) {
  for (const auto& [input, value] : request.options.device_inputs)
    if (request.inputs.contains(input))
      fail(errc::invalid_input, "input '{}' is given twice, as a host tensor and on a device", input);
}

} // namespace

session_machine::session_machine(const std::vector<device_info>& devices, ledger_accounts accounts,
                                 std::shared_ptr<session_plans> plans, completion_mode completion)
    : plans_(std::move(plans)), completion_(completion), installed_(std::move(accounts), commands_) {
  for (const device_info& d : devices)
    devices_.push_back({.name = d.name, .incarnation = d.incarnation});
}

void session_machine::add_device(const device_info& device, std::shared_ptr<ledger_account> account) {
  devices_.push_back({.name = device.name, .incarnation = device.incarnation});
  installed_.add_device(std::move(account));
  plans_->add_device(device);
  take_out_leaving();
  retire_evicted();
}

void session_machine::take_commands(std::vector<command>& into) {
  if (leaving_ > 0)
    let_devices_go();
  // It asks every device, of which there may be thousands, so not after each chunk.
  if (const bool here = installed_.take_moved(); std::exchange(memory_moved_, false) || here)
    share_memory();
  into.clear();
  into.swap(commands_);
}

void session_machine::answer(run_request& request, run_result result, failure why) {
  expects(!std::exchange(request.answered, true), "a run was answered twice");
  commands_.push_back(run_answer{request.ticket, std::move(result), std::move(why)});
}

void session_machine::start_run(const run_request_ptr& request) {
  if (request->only_fetches)
    return fetch_all(request);
  plans_->count_run();
  const failure why = capture([&] {
    check_given_once(*request);
    if (const auto limit = time_limit(request->options.timeout, "run_options::timeout"))
      request->deadline = now_ + *limit;
  });
  if (why.failed())
    return answer(*request, {}, why);
  if (must_wait()) // a small run does not pass a large one for ever, of this session or another
    wait(request);
  else
    start_attempt(request);
}

void session_machine::start_attempt(const run_request_ptr& request, const plan_outcome& made) {
  if (request->only_fetches)
    return fetch_all(request);
  execution* e = nullptr;
  failure why = capture([&] {
    if ((e = begin_ahead(request)))
      return advance(*e);
    check_device_left();
    made.check();
    check_request(*request);
    if (await_host_copies(request, plans_->host_inputs()))
      return;
    auto found = plans_->prepare({request->inputs, request->options.device_inputs, &request->carried}, made);
    if (auto* job = std::get_if<plan_job>(&found))
      return want({begin_run{request}, made}, std::move(*job));
    auto& prepared = std::get<prepared_run>(found);
    if (await_host_copies(request, inputs_wanted_on_host(*request, *prepared.source)))
      return;
    auto fresh = std::make_unique<execution>(request, std::move(prepared), completion_);
    e = fresh.get();
    executions_.emplace(e->id(), std::move(fresh));
    begun_ = e->id();
    start_segment(*e, 0);
  });
  if (why.code == errc::out_of_memory && request->shortages > 0) {
    why.message = fmt::format("{}; {}", request->shortage, why.message);
    plans_->restore_memory(); // the next run may find more
  }
  if (why.failed())
    e ? end_early(*e, why) : answer(*request, {}, why);
}

void session_machine::start_segment(execution& e, uint32_t segment, const plan_outcome& made) {
  bound_plan_ptr bound = segment == 0 ? e.prepared().bound : nullptr;
  try {
    made.check();
    if (!bound) {
      auto found = plans_->bind(e.prepared(), segment, made);
      if (auto* job = std::get_if<plan_job>(&found))
        return want({begin_segment{e.id(), segment}, made}, std::move(*job));
      bound = std::get<bound_plan_ptr>(std::move(found));
    }
  } catch (const memory_shortage& why) {
    return start_over_spilled(e, why);
  }
  retire_evicted();
  const auto slot = take_slot(e, bound);
  if (!slot)
    return;
  e.start(bound, *slot);
  dispatch(e);
  advance(e); // if everything is known already
}

void session_machine::dispatch(execution& e) {
  const plan& p = e.source();
  batches_.resize(std::max(batches_.size(), p.devices.size()));
  const failure why = capture([&] {
    while (std::optional<chunk_work> work = e.take()) {
      const device_index d = p.chunks[work->chunk].device;
      if (batches_[d].works.empty())
        batched_.push_back(d);
      batches_[d].works.push_back(std::move(*work));
    }
  });
  // What was taken counts as sent: it goes out even if the run ends here, and its answers end the execution.
  std::vector<device_index> to = std::exchange(batched_, {});
  std::sort(to.begin(), to.end());
  for (const device_index d : to) {
    run_chunks batch = std::exchange(batches_[d], {});
    if (p.devices[d].kind == device_kind::control)
      start_control(e, std::move(batch.works.front()));
    else
      send(e.planned()->devices[d], std::move(batch));
  }
  if (why.failed())
    throw error(why.code, why.message);
}

void session_machine::advance(execution& e) {
  if (e.outputs_complete())
    return finish(e);
  if (!e.segment_finished())
    return;
  const uint32_t next = e.bound()->segment + 1;
  leave_segment(e);
  expects(next < e.source().segment_count, "every chunk is complete, but an output is missing");
  start_segment(e, next);
}

void session_machine::on(const chunk_begun& begun) {
  if (const auto found = executions_.find(begun.execution); found != executions_.end() && !found->second->stopped())
    capture([&] { // what is wrong shows again when the chunk has ended
      found->second->look_ahead(begun);
      expect_next(*found->second);
    });
}

void session_machine::on(chunk_ended& ended) {
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
    return end_early(e, {ended.result.code, fmt::format("device '{}' failed in {}: {}", devices_[device].name,
                                                        e.describe_chunk(ended.chunk), ended.result.message)});
  const failure why = capture([&] {
    e.complete(ended.chunk, ended.result);
    dispatch(e);
    advance(e);
  });
  if (why.failed())
    end_early(e, {why.code, fmt::format("{} (after {} on device '{}')", why.message, e.describe_chunk(ended.chunk),
                                        devices_[device].name)});
}

void session_machine::finish(execution& e) {
  if (e.purpose())
    return finish_body(e);
  const run_request_ptr kept = e.request();
  run_request& request = *kept;
  run_result result;
  result.outputs = e.collect_outputs();
  result.kept = e.collect_kept();
  request.carried.made = e.collect_carried();
  hands_on_ = e.has_handed_on();
  e.add_stats();
  result.stats = request.stats;
  if (request.options.trace)
    result.trace = std::make_shared<const run_trace>(e.take_trace());
  answer(request, std::move(result));
  e.stop();
  end_all(kept);
  drain(e);
}

void session_machine::drain(execution& e) {
  if (!e.drained())
    return;
  leave_segment(e);
  if (e.aborted())
    for (size_t d = 0; d < e.planned()->devices.size(); ++d)
      if (e.planned()->used[d])
        send(e.planned()->devices[d], end_execution{e.id()});
  const run_request_ptr request = e.request();
  ended_ = std::move(executions_.extract(e.id()).mapped());
  resume_waiting(request);
}

void session_machine::leave_segment(execution& e) {
  if (!e.bound())
    return;
  const uint64_t id = e.bound()->id;
  e.leave_segment();
  installed_.leave(id, e.slot());
}

void session_machine::check_device_left() const {
  std::string causes;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const device_state& device = devices_[d];
    if (!plans_->may_use(d))
      continue;
    if (device.lost_because.empty() && !device.is_out)
      return;
    causes += device.lost_because.empty() ? fmt::format("device '{}' leaves: {}; ", device.name, device.leaves_because)
                                          : fmt::format("device '{}' is lost: {}; ", device.name, device.lost_because);
  }
  fail(errc::device_lost, "{}no device is left", causes);
}

bool session_machine::has_work(size_t device) const {
  if (installed_.is_installing(device))
    return true;
  if (fetches_from(device))
    return true;
  return std::any_of(executions_.begin(), executions_.end(), [&](const auto& entry) {
    const auto index = index_in(*entry.second->planned(), device);
    return index && entry.second->on_device(*index);
  });
}

} // namespace troupe
