#include "run/attempts.hpp"

#include "run/chunk_batches.hpp"

namespace troupe {

void attempts::on(const chunk_begun& begun) {
  if (execution* const e = s_.book.find_running(begun.execution))
    capture([&] { // what is wrong shows again when the chunk has ended
      e->look_ahead(begun);
      s_.ahead.expect_next(*e);
    });
}

void attempts::on(chunk_ended& ended) {
  execution* const found = s_.book.find(ended.execution);
  if (!found || !found->in_flight().end(ended.chunk))
    return; // of an attempt that is over, or spurious
  execution& e = *found;
  const size_t device = e.planned()->devices[e.source().chunks[ended.chunk].device];
  // Of a stopped attempt too: the device is lost for every run, whichever of them hears of it.
  if (!ended.result.ok() && ended.result.code == errc::device_lost)
    return otherwise_.lose_device(device, ended.result.message);
  if (e.stopped())
    return s_.book.drain(e);
  if (!ended.result.ok())
    return otherwise_.chunk_failed(e, device, ended);
  const failure why = capture([&] { complete(e, ended.chunk, ended.result); });
  if (why.failed())
    s_.book.end_early(e, {why.code, fmt::format("{} (after {} on device '{}')", why.message,
                                                describe_chunk(e.source(), ended.chunk), s_.devices.name(device))});
}

void attempts::on_installed(uint64_t bound_plan) {
  s_.book.for_each_running(bound_plan, [&](execution& e) {
    if (e.request()->only_prepares && s_.installed.is_ready(bound_plan))
      answer(e, {});
  });
}

void attempts::begin(const begin_run& run, const plan_outcome& made) {
  const run_request_ptr& request = run.request;
  if (request->answered)
    return;
  if (request->only_fetches)
    return fetch_all(request);
  if (run.in_turn && made.ok() && s_.memory.must_wait())
    return s_.memory.wait(request); // a small run does not pass a large one for ever, of this session or another
  execution* e = nullptr;
  failure why = capture([&] {
    if ((e = s_.ahead.begin(request)))
      return advance(*e);
    if ((e = start(request, made)))
      start_segment(*e, 0, {});
  });
  if (why.code == errc::out_of_memory && request->shortages > 0) {
    why.message = fmt::format("{}; {}", request->shortage, why.message);
    s_.plans->restore_memory(); // the next run may find more
  }
  if (why.failed())
    e ? s_.book.end_early(*e, why) : s_.book.answer(*request, {}, why);
}

execution* attempts::start(const run_request_ptr& request, const plan_outcome& made) {
  s_.devices.check_left();
  made.check();
  check_kept(s_.plans->known_model(), request->options.keep);
  s_.copies.check(*request);
  // Their elements decide shapes, so no plan can be looked up before they are here.
  if (s_.copies.ask(request, s_.plans->known_model().host_inputs))
    return nullptr;
  auto found = s_.plans->prepare({request->inputs, request->options.device_inputs, &request->carried}, made);
  if (auto* job = std::get_if<plan_job>(&found)) {
    s_.todo.add_after(std::move(*job), {begin_run{request}, made});
    return nullptr;
  }
  auto& prepared = std::get<prepared_run>(found);
  if (s_.copies.ask(request, inputs_wanted_on_host(*request, *prepared.source)))
    return nullptr;
  execution& e = s_.book.add(std::make_unique<execution>(request, std::move(prepared), completion_));
  if (!request->only_prepares)
    s_.ahead.note_begin(e);
  return &e;
}

void attempts::fetch_all(const run_request_ptr& request) {
  const failure why = capture([&] {
    s_.copies.check(*request);
    std::vector<std::string> names;
    for (const auto& [input, value] : request->options.device_inputs)
      names.push_back(input);
    if (s_.copies.ask(request, names))
      return;
    run_result copies;
    copies.outputs = request->inputs;
    copies.stats = request->stats;
    s_.book.answer(*request, std::move(copies));
  });
  if (why.failed())
    s_.book.answer(*request, {}, why);
}

void attempts::begin(const begin_segment& next, const plan_outcome& made) {
  execution* const e = s_.book.find_running(next.execution);
  if (!e)
    return; // of a run that has ended
  const failure why = capture([&] { start_segment(*e, next.segment, made); });
  if (why.failed())
    s_.book.end_early(*e, why);
}

void attempts::start_segment(execution& e, uint32_t segment, const plan_outcome& made) {
  bound_plan_ptr bound = segment == 0 ? e.prepared().bound : nullptr;
  try {
    made.check();
    if (!bound) {
      auto found = s_.plans->bind(e.prepared(), segment, made);
      if (auto* job = std::get_if<plan_job>(&found))
        return s_.todo.add_after(std::move(*job), {begin_segment{e.id(), segment}, made});
      bound = std::get<bound_plan_ptr>(std::move(found));
    }
  } catch (const memory_shortage& why) {
    return otherwise_.start_over_spilled(e, why);
  }
  const auto slot = take_slot(e, bound);
  if (!slot)
    return;
  e.start(bound, *slot);
  if (e.request()->only_prepares)
    return on_installed(bound->id);
  dispatch(e);
  advance(e); // if everything is known already
}

std::optional<uint32_t> attempts::take_slot(const execution& e, const bound_plan_ptr& bound) {
  if (const auto slot = s_.memory.take_slot(bound, e.planned()))
    return slot;
  const auto request = run_request_ptr(e.request()); // the execution ends here, if it waits
  if (!s_.book.others_in_flight(request) && !s_.installed.waits())
    return s_.installed.take_slot_anyway(bound, e.planned()); // nothing else could be freed: the device decides
  otherwise_.wait(request);
  return std::nullopt;
}

/// Devices wait for peers only if no other run is in flight: a chunk that waits keeps its device's later chunks
/// waiting, which may be another run's.
void attempts::dispatch(execution& e) {
  const plan& p = e.source();
  const bool peers_wait = !s_.book.others_in_flight(e.request());
  chunk_batches ready;
  const failure why = capture([&] {
    while (std::optional<chunk_work> work = e.take(peers_wait)) {
      const chunk_id id = work->chunk;
      ready.add(p.chunks[id].device, std::move(*work), e.awaits_peers(id));
    }
  });
  // What was taken counts as sent: it goes out even if the run ends here, and its answers end the execution.
  for (auto& [d, batch] : ready.take())
    if (p.devices[d].kind == device_kind::control)
      // Each control-flow node has a plan device of its own, so its batch is one chunk.
      s_.controls.begin(e, std::move(batch.works.front()));
    else
      s_.commands.push_back(device_order{e.planned()->devices[d], std::move(batch)});
  if (why.failed())
    throw error(why.code, why.message);
}

void attempts::complete(execution& e, chunk_id chunk, chunk_result& result) {
  e.complete(chunk, result);
  dispatch(e);
  advance(e);
}

void attempts::advance(execution& e) {
  if (e.values().are_complete())
    return e.purpose() ? finish_body(e) : finish(e);
  if (!e.segment_finished())
    return;
  const uint32_t next = e.bound()->segment + 1;
  s_.book.leave_segment(e);
  expects(next < e.source().segment_count, "every chunk is complete, but an output is missing");
  s_.todo.add({begin_segment{e.id(), next}, {}});
}

void attempts::finish(execution& e) {
  run_request& request = *e.request();
  s_.changes.ended(e);
  run_result result;
  result.outputs = e.values().named_outputs();
  result.kept = e.values().kept();
  request.carried.made = e.values().carried();
  s_.ahead.note_end(e);
  request.stats.plan_cached = e.prepared().cached;
  e.costs().add_to(request.stats);
  result.stats = request.stats;
  if (request.options.trace)
    result.trace = std::make_shared<const run_trace>(
        e.costs().take_trace(std::chrono::nanoseconds(request.started.time_since_epoch()).count()));
  answer(e, std::move(result));
}

void attempts::answer(execution& e, run_result result) {
  const run_request_ptr kept = e.request();
  // First, so that the caller does not wait while the attempt is taken down.
  s_.book.answer(*kept, std::move(result));
  e.stop();
  s_.controls.forget(e);
  s_.book.end_all(kept);
  s_.book.drain(e);
}

void attempts::finish_body(execution& e) {
  const chunk_place place = *e.purpose();
  execution& around = s_.book.at(place.execution);
  around.prepared().cached &= e.prepared().cached;
  around.costs().add(e.costs(), e.costs().traced() ? s_.controls.position(around, place.chunk) : "");
  s_.controls.take(place, e.values().outputs());
  e.stop();
  s_.book.drain(e);
}

void attempts::begin(const begin_body& body, const plan_outcome& made) {
  const chunk_place place = body.place;
  if (!s_.controls.has(place))
    return; // of a run that has ended
  execution& e = s_.book.at(place.execution);
  std::string where = control_chunks::name(e, place.chunk);
  const failure why = capture([&] {
    auto call = s_.controls.next(e, place.chunk);
    if (call) {
      where = s_.controls.position(e, place.chunk);
      return start_body(e, place.chunk, std::move(*call), made);
    }
    chunk_result result = s_.controls.finish(e, place.chunk);
    e.in_flight().end(place.chunk);
    complete(e, place.chunk, result);
  });
  if (why.failed())
    s_.book.end_early(e, {why.code, fmt::format("{}: {}", where, why.message)});
}

void attempts::start_body(execution& around, chunk_id chunk, control_flow::body_call call, const plan_outcome& made) {
  const planned_model_ptr planned = body_of(around, chunk, call.body);
  const chunk_place place{around.id(), chunk};
  const run_request_ptr request = around.request();
  prepared_run prepared;
  try {
    made.check();
    auto found =
        s_.plans->prepare_body(planned, call.inputs, around.prepared().symbols, s_.book.memory_of(request), made);
    if (auto* job = std::get_if<plan_job>(&found))
      return s_.todo.add_after(std::move(*job), {begin_body{place}, made});
    prepared = std::get<prepared_run>(std::move(found));
  } catch (const memory_shortage&) {
    // A plan for the devices as they were cannot spill any more, since a device that it would spill to may be lost. So
    // the run starts over by a plan for the devices as they are.
    if (s_.plans->devices().are_of(*planned))
      throw;
    return otherwise_.start_over(request);
  }
  execution& body = s_.book.add(
      std::make_unique<execution>(request, std::move(prepared), completion_, place, std::move(call.inputs)));
  start_segment(body, 0, {});
}

void attempts::begin(const begin_answer& query, const plan_outcome& made) {
  query_answer answer{.query = query.query};
  std::optional<plan_job> missing;
  answer.why = capture([&] {
    s_.devices.check_left();
    made.check();
    auto found = s_.plans->prepare({query.inputs, {}}, made);
    if (auto* job = std::get_if<plan_job>(&found))
      missing = std::move(*job);
    else
      answer.bound = std::get<prepared_run>(found).bound;
  });
  if (missing)
    s_.todo.add_after(std::move(*missing), {query, made});
  else
    s_.commands.push_back(std::move(answer));
}

void attempts::begin(const install_ahead& ahead, const plan_outcome& made) {
  if (made.ok())
    s_.ahead.install(ahead);
}

} // namespace troupe
