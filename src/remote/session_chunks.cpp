// Chunks on a worker: their values, their order on a device, what they make.
#include "remote/session_service.hpp"

namespace troupe::remote {
namespace {

/// No session has so many executions of one layout in flight.
constexpr uint32_t max_slots = 1024;

} // namespace

void session_service::run(run_chunk order) {
  bound_plan_ptr bound;
  const served_chunk_ptr chunk = make_chunk(order, bound);
  {
    const std::lock_guard lock(mutex_);
    if (ended_)
      return;
    execution_state& e = executions_[order.execution];
    ++e.chunks;
    chunk->work.stop = e.stop;
    chunk->missing = 1; // until all uploads are looked at
    queues_[order.device].waiting.push_back(chunk);
  }
  take_uploads(chunk, *bound, std::move(order.uploads));
  {
    const std::lock_guard lock(mutex_);
    --chunk->missing;
  }
  pump(order.device);
}

session_service::served_chunk_ptr session_service::make_chunk(const run_chunk& order, bound_plan_ptr& bound) {
  device(order.device);
  device_index self = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto plan = bound_.find(order.bound_plan);
    if (plan == bound_.end() || !plan->second.devices.contains(order.device))
      fail(errc::invalid_input, "bound plan {} is not installed on device {}", order.bound_plan, order.device);
    bound = plan->second.bound;
    self = plan->second.devices.at(order.device);
  }
  const plan& p = *bound->source;
  if (order.chunk >= p.chunks.size() || p.chunks[order.chunk].device != self ||
      p.chunks[order.chunk].segment != bound->segment)
    fail(errc::invalid_input, "the bound plan has no chunk {} on this device", order.chunk);
  const troupe::chunk& c = p.chunks[order.chunk];
  if (order.uploads.size() != c.uploads.size() || order.downloads.size() != c.downloads.size())
    fail(errc::invalid_input, "chunk {} comes with a wrong number of values", order.chunk);
  if (order.slot >= max_slots)
    fail(errc::invalid_input, "slot {} is beyond the limit of {}", order.slot, max_slots);
  if (order.execution >> 40 != 0)
    fail(errc::invalid_input, "execution {} is numbered too high", order.execution);
  auto chunk = std::make_shared<served_chunk>();
  chunk->device = order.device;
  chunk->execution = order.execution;
  chunk->wanted = order.downloads;
  if (!memory_->take_slot(order.device, *bound, self, order.slot))
    chunk->why = {errc::out_of_memory,
                  fmt::format("device '{}' has no room now for one more run at a time: sessions hold too much of it",
                              device(order.device).info().name)};
  chunk->work = {.bound_plan = bound->id,
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
    const value_ref here = kept(value.key);
    if (here->type() != expected.type || here->dims() != *expected.dims)
      fail(errc::invalid_input, "upload {} of chunk {} is another value", i, chunk->work.chunk);
    chunk->work.uploads[i] = here;
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ++chunk->missing;
  }
  const auto taken = [self = shared_from_this(), chunk, i](tensor t, const failure& why) {
    self->took(chunk, i, std::move(t), why);
  };
  value_source from = from_session_;
  if (value.from == origin::peer)
    from.pull = [this, peer = value.peer](const hash128& key, const tensor& blob, pull_done done) {
      shared_->others.pull(peer, key, blob, std::move(done));
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
  pump(chunk->device);
}

void session_service::pump(uint32_t device) {
  std::unique_lock lock(mutex_);
  if (std::exchange(queues_[device].is_pumping, true)) {
    queues_[device].again = true; // whoever pumps looks once more: so chunks keep their order
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
  bool is_complete = false;
  {
    const std::lock_guard lock(mutex_);
    why = chunk->why;
    is_complete = chunk->missing == 0;
  }
  if (why.failed()) {
    answer({.code = why.code, .message = why.message});
    stop(chunk->execution); // later chunks would find nothing of what this one makes
  } else if (!is_complete) {
    answer({.code = errc::cancelled, .message = "dropped: the execution has ended"});
  } else {
    device(chunk->device).run(chunk->work, answer);
  }
}

void session_service::ended(const served_chunk_ptr& chunk, chunk_result result) {
  chunk_made made{
      .device = chunk->device, .execution = chunk->execution, .chunk = chunk->work.chunk, .result = std::move(result)};
  if (made.result.ok())
    if (const failure why = capture([&] { keep_all(*chunk, made.downloads); }); why.failed())
      made.result = {.code = why.code, .message = why.message};
  {
    const std::lock_guard lock(mutex_);
    if (const auto e = executions_.find(chunk->execution); e != executions_.end() && --e->second.chunks == 0)
      executions_.erase(e);
  }
  say(std::move(made));
}

void session_service::keep_all(const served_chunk& chunk, std::vector<sent_value>& values) {
  for (size_t i = 0; i < chunk.wanted.size(); ++i)
    values.push_back(keep(chunk.wanted[i], chunk.work.downloads[i]));
}

sent_value session_service::keep(const wanted_value& wanted, const value_ref& made) {
  sent_value value{.from = origin::kept, .type = made->type(), .dims = made->dims(), .key = wanted.key};
  const tensor blob = made->has_host() ? to_blob(made->host()) : tensor();
  value.size = blob.defined() ? blob.bytes() : 0;
  if (blob.defined() && wanted.send)
    value.from = value.size <= message_bytes ? origin::message : origin::sender;
  if (value.from == origin::message)
    value.bytes.assign(blob.data<uint8_t>(), blob.data<uint8_t>() + blob.bytes());
  // A short value for the session's process alone is nothing to keep: nothing asks for it again.
  if (value.from != origin::message || wanted.home != destination::host)
    keep(wanted.key, made, blob);
  return value;
}

void session_service::stop(uint64_t execution) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = executions_.find(execution);
    if (found == executions_.end())
      return;
    found->second.stop->store(true);
  }
  for (uint32_t d = 0; d < shared_->devices.size(); ++d)
    pump(d);
}

} // namespace troupe::remote
