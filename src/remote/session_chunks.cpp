// Chunks on a worker: their values, their order on a device, what they make.
#include "remote/session_service.hpp"

#include <algorithm>

namespace troupe::remote {
namespace {

/// A session has fewer executions than this of one layout in flight.
constexpr uint32_t max_slots = 1024;

} // namespace

void session_service::run(run_chunk order) {
  const served_chunk_ptr chunk = make_chunk(order);
  const lent_plan_ptr plan = chunk->plan; // a chunk that is answered lets go of it
  bool has_failed = false;
  {
    const std::lock_guard lock(mutex_);
    if (ended_)
      return;
    chunk->work.stop = executions_.begin(chunk->at, plan->bound, plan->self, order.chunk, order.slot);
    has_failed = chunk->work.stop->load();
    chunk->missing = 1; // until all uploads are looked at
    queues_[order.device].waiting.push_back(chunk);
  }
  if (!has_failed)
    take_uploads(chunk, *plan->bound, std::move(order.uploads));
  {
    const std::lock_guard lock(mutex_);
    --chunk->missing;
  }
  pump(order.device);
}

session_service::served_chunk_ptr session_service::make_chunk(const run_chunk& order) {
  shared_->device(order.device);
  auto chunk = std::make_shared<served_chunk>();
  chunk->plan = installs_->find(order.bound_plan, order.device);
  const bound_plan& bound = *chunk->plan->bound;
  const plan& p = *bound.source;
  if (order.chunk >= p.chunks.size() || p.chunks[order.chunk].device != chunk->plan->self ||
      p.chunks[order.chunk].segment != bound.segment)
    fail(errc::invalid_input, "the bound plan has no chunk {} on this device", order.chunk);
  const troupe::chunk& c = p.chunks[order.chunk];
  if (order.uploads.size() != c.uploads.size() || order.downloads.size() != c.downloads.size())
    fail(errc::invalid_input, "chunk {} comes with a wrong number of values", order.chunk);
  if (order.slot >= max_slots)
    fail(errc::invalid_input, "slot {} is beyond the limit of {}", order.slot, max_slots);
  // `local` puts the session's number above these bits.
  if (order.execution >> 40 != 0)
    fail(errc::invalid_input, "execution {} is numbered too high", order.execution);
  chunk->at = {order.execution, order.device};
  chunk->wanted = order.downloads;
  if (!chunk->plan->take_slot(order.slot))
    chunk->why = {errc::out_of_memory,
                  fmt::format("device '{}' has no room now for one more run at a time: sessions hold too much of it",
                              shared_->device(order.device).info().name)};
  chunk->work = {.bound_plan = bound.id,
                 .chunk = order.chunk,
                 .execution = local(order.execution),
                 .slot = order.slot,
                 .uploads = std::vector<value_ref>(c.uploads.size()),
                 .timed = order.timed};
  for (const wanted_value& w : order.downloads)
    chunk->work.downloads.push_back(std::make_shared<moved_value>(w.home));
  return chunk;
}

void session_service::take_uploads(const served_chunk_ptr& chunk, const bound_plan& bound,
                                   std::vector<sent_value> uploads) {
  const std::vector<value_id>& ids = bound.source->chunks[chunk->work.chunk].uploads;
  for (size_t i = 0; i < uploads.size(); ++i) {
    const expected_value expected{bound.source->program->values[ids[i]].type, &bound.dims[ids[i]]};
    take_upload(chunk, i, std::move(uploads[i]), expected);
  }
}

void session_service::take_upload(const served_chunk_ptr& chunk, size_t i, sent_value value,
                                  const expected_value& expected) {
  if (value.from == origin::kept) {
    const value_ref here = values_.find(value.key);
    if (here->type() != expected.type || here->dims() != *expected.dims)
      fail(errc::invalid_input, "upload {} of chunk {} is another value", i, chunk->work.chunk);
    chunk->work.uploads[i] = here;
    return;
  }
  held_memory held;
  const failure full = capture([&] { held = values_.hold(value); });
  {
    const std::lock_guard lock(mutex_);
    ++chunk->missing;
    chunk->held.push_back(std::move(held));
  }
  const auto taken = [self = shared_from_this(), chunk, i](tensor t, const failure& why) {
    self->took(chunk, i, std::move(t), why);
  };
  if (full.failed())
    return taken({}, full);
  value_source from = from_session_;
  if (value.from == origin::peer)
    from.pull = [this, peer = value.peer](const hash128& key, const tensor& blob, pull_done done) {
      shared_->others.pull(peer, {.key = key, .blob = blob, .done = std::move(done), .stop = line_->ended()});
    };
  take(std::move(value), expected, from, taken);
}

void session_service::took(const served_chunk_ptr& chunk, size_t i, tensor value, const failure& why) {
  {
    const std::lock_guard lock(mutex_);
    --chunk->missing;
    if (why.failed())
      chunk->why = why;
    else
      chunk->work.uploads[i] = std::make_shared<moved_value>(std::move(value));
  }
  pump(chunk->at.device);
}

void session_service::pump(uint32_t device) {
  std::unique_lock lock(mutex_);
  if (std::exchange(queues_[device].is_pumping, true)) {
    queues_[device].again = true; // the thread that pumps looks once more: so chunks keep their order
    return;
  }
  for (bool more = true; more;) {
    queues_[device].again = false;
    std::deque<served_chunk_ptr>& waiting = queues_[device].waiting;
    // One that has been stopped does not wait for its values.
    while (!waiting.empty() && (waiting.front()->missing == 0 || waiting.front()->work.stop->load())) {
      const served_chunk_ptr chunk = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      submit(chunk);
      lock.lock();
    }
    more = queues_[device].again;
  }
  queues_[device].is_pumping = false;
}

void session_service::submit(const served_chunk_ptr& chunk) {
  const auto answer = [self = shared_from_this(), chunk](chunk_result result) {
    self->ended(chunk, std::move(result));
  };
  failure why;
  {
    const std::lock_guard lock(mutex_);
    why = chunk->why;
    if (!why.failed() && (chunk->missing > 0 || chunk->work.stop->load()))
      why = {errc::cancelled, "dropped: the execution has ended"};
  }
  if (why.failed())
    answer({.code = why.code, .message = why.message});
  else
    shared_->device(chunk->at.device).run(chunk->work, answer);
}

void session_service::ended(const served_chunk_ptr& chunk, chunk_result result) {
  const auto [execution, on] = chunk->at;
  chunk_made made{.device = on, .execution = execution, .chunk = chunk->work.chunk, .result = std::move(result)};
  if (made.result.ok())
    if (const failure why = capture([&] { made.downloads = values_.keep_all(chunk->wanted, chunk->work.downloads); });
        why.failed())
      made.result = {.code = why.code, .message = why.message};
  bool has_failed = false;
  lent_plan_ptr plan;
  std::vector<served_executions::place> idle;
  {
    const std::lock_guard lock(mutex_);
    has_failed = executions_.finish(chunk->at, chunk->work.chunk, made.result.ok());
    plan.swap(chunk->plan);
    if (ended_)
      idle = executions_.take_idle();
  }
  plan = nullptr; // before the session hears that it may do without
  for (const auto& at : idle)
    shared_->device(at.device).end(local(at.execution));
  say(std::move(made));
  if (has_failed)
    stop(execution); // its other chunks would find nothing of what this one was to make
}

void session_service::stop(uint64_t execution) {
  bool has_stopped = false;
  {
    const std::lock_guard lock(mutex_);
    has_stopped = executions_.stop(execution);
  }
  if (has_stopped)
    pump_all();
}

void session_service::end(const end_chunks& order) {
  served_device& on = shared_->device(order.device);
  {
    const std::lock_guard lock(mutex_);
    if (!executions_.end({order.execution, order.device}))
      return;
  }
  on.end(local(order.execution));
}

void session_service::pump_all() {
  for (uint32_t d = 0; d < shared_->devices.size(); ++d)
    pump(d);
}

} // namespace troupe::remote
