#include "actors/device_actor.hpp"

#include "actors/awake.hpp"
#include "device/tells_progress.hpp"

#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace troupe::actors {

void device_health::leave(std::string because, const std::shared_ptr<const void>& need) {
  const std::lock_guard lock(mutex_);
  leaves_because_ = std::move(because);
  need_ = need;
}

std::optional<std::pair<std::shared_ptr<const void>, std::string>> device_health::leaves() const {
  const std::lock_guard lock(mutex_);
  if (leaves_because_.empty())
    return std::nullopt;
  return std::pair(need_.lock(), leaves_because_);
}

void device_health::lose(std::string because) {
  {
    const std::lock_guard lock(mutex_);
    if (because_.empty())
      because_ = std::move(because);
  }
  give_up();
}

void device_health::give_up() {
  lost = true;
  if (on_lost)
    on_lost();
}

std::string device_health::because(std::string_view otherwise) const {
  const std::lock_guard lock(mutex_);
  return because_.empty() ? std::string(otherwise) : because_;
}

void device_actor_state::lose(const failure& why) {
  health->lose(why.message);
  self->quit(caf::exit_reason::kill);
}

void drop_list::add(execution_id execution, const std::function<void()>& announce) {
  const std::lock_guard lock(mutex_);
  executions_.push_back(execution);
  used_ = true;
  announce();
}

void drop_list::remove(execution_id execution) {
  if (!used_)
    return;
  const std::lock_guard lock(mutex_);
  std::erase(executions_, execution);
  used_ = !executions_.empty();
}

bool drop_list::contains(execution_id execution) const {
  if (!used_)
    return false;
  const std::lock_guard lock(mutex_);
  return std::find(executions_.begin(), executions_.end(), execution) != executions_.end();
}

namespace {

using pointer = device_ref::stateful_pointer<device_actor_state>;

/// Looks for the next message, if another chunk is likely to come soon.
void stay_awake(pointer self) {
  look_until([&] { return !self->mailbox().empty(); }, self->state.awake_until);
}

completion_sink sender_of(pointer self) {
  return caf::actor_cast<completion_sink>(self->current_sender());
}

device_opened open(pointer self) {
  auto& state = self->state;
  failure why = capture([&] {
    if (!state.owned)
      state.owned = state.make();
    expects(state.owned != nullptr, "a device factory returned nothing");
    state.health->may_hang = state.owned->may_hang();
    state.health->on_lost = state.owned->if_lost();
    if (auto* telling = dynamic_cast<tells_progress*>(state.owned.get()))
      telling->on_progress([health = state.health] { ++health->progress; });
    state.stays_awake = worth_looking(state.owned->info());
  });
  if (why.failed())
    return {{}, std::move(why)};
  return {state.owned->info(), {}};
}

void install(pointer self, const install_plan& request) {
  auto& state = self->state;
  failure why = capture([&] {
    expects(state.owned != nullptr, "install before open");
    state.owned->install(request.bound, request.self);
    state.installed.insert(request.bound->id);
  });
  ++state.health->progress; // also if it failed: an error is an answer
  const bool lost = why.code == errc::device_lost && why.failed();
  answer(self, sender_of(self), plan_installed{request.bound->id, request.self, std::move(why)});
  if (lost)
    self->quit(caf::exit_reason::kill);
  else
    stay_awake(self);
}

/// Hears how a chunk has ended, from any thread.
using chunk_teller = std::function<void(chunk_ended)>;

/// Returns the callback of one chunk. It may be called from any thread, so it touches nothing of the actor but its
/// address.
chunk_done completion_of(pointer self, const chunk_work& work, const chunk_teller& tell) {
  return [tell, me = self->address(), health = self->state.health, dropped = self->state.dropped,
          execution = work.execution, chunk = work.chunk](chunk_result result) {
    ++health->progress;
    const bool failed = !result.ok();
    const bool lost = failed && result.code == errc::device_lost;
    const auto send = [&] { tell({execution, chunk, std::move(result)}); };
    if (failed)
      dropped->add(execution, send); // before any later chunk is answered as dropped
    else
      send();
    if (lost)
      if (auto actor = caf::actor_cast<caf::strong_actor_ptr>(me))
        caf::anon_send_exit(actor, caf::exit_reason::kill);
  };
}

/// Returns whether the device can take more.
bool submit(pointer self, chunk_work work, const chunk_teller& tell) {
  auto& state = self->state;
  const bool stopped = work.stop && work.stop->load(std::memory_order_relaxed);
  if (stopped || state.dropped->contains(work.execution)) {
    tell({work.execution, work.chunk, {.code = errc::cancelled, .message = "dropped: the execution has ended"}});
    return true;
  }
  if (!state.installed.contains(work.bound_plan)) { // sent before the answer that says so
    tell({work.execution, work.chunk, {.code = errc::cancelled, .message = "dropped: its plan is not installed"}});
    return true;
  }
  const execution_id execution = work.execution;
  const chunk_id chunk = work.chunk;
  chunk_done done = completion_of(self, work, tell);
  const failure why = capture([&] {
    expects(state.owned != nullptr, "submit before open");
    state.owned->submit(std::move(work), std::move(done));
  });
  // A device must not throw from submit. If one does, its state is unknown: it counts as lost.
  if (why.failed()) {
    tell({execution, chunk, {.code = errc::device_lost, .message = why.message}});
    self->quit(caf::exit_reason::kill);
  }
  return !why.failed();
}

void submit_all(pointer self, run_chunks& request) {
  // Answers come from threads of the device, or from this one, which then has nothing to do. Not of failures: they are
  // told under a lock.
  const bool own_thread = has_own_thread(self);
  const chunk_teller tell = [to = sender_of(self), own_thread](chunk_ended ended) {
    if (own_thread && ended.result.ok())
      send_here(to, std::move(ended), run_on::lent);
    else
      caf::anon_send(to, std::move(ended));
  };
  for (chunk_work& work : request.works) {
    chunk_begun begun{work.execution, work.chunk, {}};
    if (!submit(self, std::move(work), tell))
      return;
    if (self->state.owned)
      begun.made = self->state.owned->take_made_ahead();
    if (!begun.made.empty())
      answer(self, caf::actor_cast<begin_sink>(self->current_sender()), std::move(begun));
  }
  if (own_thread && self->state.stays_awake)
    self->state.awake_until = std::chrono::steady_clock::now() + look_time;
  stay_awake(self);
}

void fetch(pointer self, const fetch_tensor& request) {
  const completion_sink to = sender_of(self);
  const auto answer = [to, health = self->state.health, ticket = request.ticket,
                       input = request.input](fetch_result result) {
    ++health->progress;
    caf::anon_send(to, tensor_fetched{ticket, input, std::move(result)});
  };
  const failure why = capture([&] { self->state.owned->fetch(request.value, answer); });
  if (why.failed())
    answer({.code = why.code, .message = why.message});
}

void put(pointer self, const put_tensor& request) {
  tensor_put answer;
  answer.why = capture([&] { answer.value = self->state.owned->put(request.value); });
  ++self->state.health->progress;
  self->send(caf::actor_cast<put_sink>(self->current_sender()), std::move(answer));
}

} // namespace

device_ref::behavior_type device_actor(pointer self, device_factory make, std::shared_ptr<device_health> health) {
  self->state.make = std::move(make);
  self->state.health = std::move(health);
  self->state.self = self;
  const entry<device_actor_state> in(self->state);
  return {
      [=](open_device) { return open(self); },
      in([=](const install_plan& request) { install(self, request); }),
      in([=](run_chunks& request) { submit_all(self, request); }),
      in([=](run_lent& request) {
        submit(self, std::move(request.work),
               [done = std::move(request.done)](chunk_ended ended) { done(std::move(ended.result)); });
      }),
      in([=](const stop_execution& request) { capture([&] { self->state.owned->stop(request.execution); }); }),
      in([=](const end_execution& request) {
        self->state.dropped->remove(request.execution);
        capture([&] { self->state.owned->end(request.execution); });
      }),
      in([=](const retire_plan& request) {
        self->state.installed.erase(request.bound_plan);
        capture([&] { self->state.owned->retire(request.bound_plan); });
        stay_awake(self);
      }),
      in([=](const fetch_tensor& request) { fetch(self, request); }),
      in([=](const put_tensor& request) { put(self, request); }),
      [=](query_stats) {
        device_stats stats;
        capture([&] { stats = self->state.owned->stats(); });
        return stats;
      },
  };
}

} // namespace troupe::actors
