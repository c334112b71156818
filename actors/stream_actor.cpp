#include "actors/stream_actor.hpp"

#include "base/elapsed.hpp"
#include "run/results.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>

namespace troupe::actors {
namespace {

/// Whether a request must run as it is, in one place.
bool stays_whole(const run_request& r) {
  return r.options.trace || !r.options.keep.empty() || !r.options.device_inputs.empty();
}

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

} // namespace

stream_ref::behavior_type stream_state::behavior(pointer self, stream_parts parts) {
  self_ = self;
  parts_ = std::move(parts);
  for (const replica& r : parts_.replicas)
    counted_.push_back({.devices = r.devices.own, .predicted_row_ms = r.predicted.row_seconds * 1e3});
  busy_since_.resize(parts_.replicas.size());
  at_work_.resize(parts_.replicas.size());
  machine_ =
      std::make_unique<stream_machine>(predicted_machine(parts_.how, parts_.options, parts_.replicas, parts_.plugin));
  const entry<stream_state> in(*this);
  return {
      in([this](const submit_request& message) { submit(message.pending); }),
      in([this](const cancel_run& message) {
        if (const auto found = by_ticket_.find(message.ticket); found != by_ticket_.end())
          tell([id = found->second](stream_machine& m, run_time t) { m.cancel(id, t); });
      }),
      in([this](const piece_ran& ended) { take_result(ended); }),
      in([this](const stream_query_message& message) { message.query->result.answer(count()); }),
      in([this](const device_joined& joined) { join(*joined.device); }),
      in([this](const close_session&) {
        closing_ = true;
        tell([](stream_machine&, run_time) {});
      }),
      in([this](const tick&) { tell([](stream_machine& m, run_time t) { m.tick(t); }); }),
  };
}

stream_ref::behavior_type stream(stream_state::pointer self, stream_parts parts) {
  return self->state.behavior(self, std::move(parts));
}

void stream_state::end_broken(const failure& why) {
  for (auto& [id, request] : requests_)
    request.caller->result.fail(why);
  self_->quit(caf::exit_reason::unhandled_exception);
}

template <class Event>
void stream_state::tell(Event&& event) {
  telling_ = true;
  event(*machine_, now());
  machine_->take_commands(commands_);
  for (stream_command& c : commands_)
    std::visit([this](auto& what) { this->carry_out(what); }, c);
  telling_ = false;
  if (closing_ && requests_.empty() && pieces_.empty())
    self_->quit();
}

// -- requests

void stream_state::submit(const pending_run_ptr& caller) {
  if (caller->cancelled)
    return caller->result.fail({errc::cancelled, "the run was cancelled"});
  const stream_request request = describe(*caller->request); // may throw: the machine knows nothing of it yet
  tell([&](stream_machine& m, run_time t) {
    const std::optional<request_id> id = m.submit(request, t);
    expects(id.has_value(), "a stream's queue has no bound of its own");
    requests_.emplace(*id, open_request{caller, request.rows, {}});
    by_ticket_.emplace(caller->request->ticket, *id);
  });
}

stream_request stream_state::describe(const run_request& request) const {
  stream_request r{.deadline = {}, .pinned = {}};
  if (!stays_whole(request))
    r = request_for(parts_.how, parts_.options, parts_.rows->measure(request.inputs),
                    parts_.replicas.front().devices.own.size());
  r.priority = request.options.priority;
  if (const auto limit = time_limit(request.options.timeout, "run_options::timeout"))
    r.deadline = request.started + *limit;
  return r;
}

void stream_state::carry_out(answer_request& what) {
  auto node = requests_.extract(what.request);
  expects(!node.empty(), "a request was answered twice");
  open_request& r = node.mapped();
  by_ticket_.erase(r.caller->request->ticket);
  ++answered_;
  stop_unwanted(what.request, r.in_flight);
  if (what.why.failed()) {
    ++failed_;
    late_ += what.why.code == errc::timeout;
    return r.caller->result.fail(what.why);
  }
  r.result.stats.total_ms = milliseconds_since(r.caller->request->started);
  r.caller->result.answer(std::move(r.result));
}

void stream_state::stop_unwanted(request_id request, const std::vector<piece_id>& pieces) {
  for (const piece_id id : pieces) {
    const flying_piece& p = pieces_.at(id);
    const bool wanted = std::any_of(p.parts.begin(), p.parts.end(), [&](const piece_part& part) {
      return part.request != request && requests_.contains(part.request);
    });
    if (!wanted)
      self_->send(parts_.replicas[p.replica].session->actor(), cancel_run{p.ticket});
  }
}

// -- pieces

void stream_state::carry_out(const start_piece& what) {
  flying_piece& p = pieces_[what.piece];
  p = {what.replica, what.parts, 0};
  for (const piece_part& part : what.parts)
    requests_.at(part.request).in_flight.push_back(what.piece);
  if (at_work_[what.replica]++ == 0)
    busy_since_[what.replica] = now();
  std::unique_ptr<pending_run> run;
  const failure why = capture([&] { run = run_of(what); });
  if (why.failed()) // heard after this event, as if a replica had said so
    return self_->send(self_, piece_ran{what.piece, nullptr, why});
  p.ticket = run->request->ticket;
  self_->send(parts_.replicas[what.replica].session->actor(), actors::run(std::move(run)));
}

std::unique_ptr<pending_run> stream_state::run_of(const start_piece& what) {
  run_options options;
  named_tensors inputs;
  const open_request& r = requests_.at(what.parts.front().request);
  if (what.parts.size() == 1 && what.parts.front().rows == r.rows) {
    const run_request& whole = *r.caller->request;
    inputs = whole.inputs;
    options = {.device_inputs = whole.options.device_inputs, .keep = whole.options.keep, .trace = whole.options.trace};
  } else {
    std::vector<rows_in> rows;
    for (const piece_part& part : what.parts)
      rows.push_back({&requests_.at(part.request).caller->request->inputs, part.first_row, part.rows});
    inputs = parts_.rows->join_inputs(rows, parts_.make);
  }
  // This holds the stream when no caller does any more.
  auto answer = [to = caf::actor_cast<stream_ref>(self_), piece = what.piece](run_result result, const failure& why) {
    caf::anon_send(to, piece_ran{piece, std::make_shared<run_result>(std::move(result)), why});
  };
  return std::make_unique<pending_run>(std::move(inputs), options, std::move(answer));
}

void stream_state::take_result(const piece_ran& ended) {
  auto node = pieces_.extract(ended.piece);
  expects(!node.empty(), "a piece ended twice");
  const flying_piece& p = node.mapped();
  failure why = ended.why;
  const bool is_cached = ended.result && ended.result->stats.plan_cached;
  bool names_devices = false;
  int64_t first = 0;
  for (const piece_part& part : p.parts) {
    if (const auto found = requests_.find(part.request); found != requests_.end()) {
      open_request& r = found->second;
      std::erase(r.in_flight, ended.piece);
      names_devices = names_devices || !r.caller->request->options.device_inputs.empty();
      if (!why.failed())
        why = capture([&] { gather(r, p, part, first, *ended.result); });
    }
    first += part.rows;
  }
  replica_stats& counted = counted_[p.replica];
  if (--at_work_[p.replica] == 0)
    counted.busy_ms += milliseconds(now() - busy_since_[p.replica]);
  if (!why.failed()) {
    ++counted.pieces;
    counted.rows += first;
  }
  const bool made_plan = !ended.why.failed() && !is_cached;
  // A value that was on a lost device is nowhere else: running it again does not help.
  const bool lost = why.failed() && why.code == errc::device_lost && !names_devices;
  tell([&](stream_machine& m, run_time t) { m.piece_ended(ended.piece, {lost, !made_plan, why}, t); });
  notice_loss(p.replica);
}

void stream_state::gather(open_request& r, const flying_piece& piece, const piece_part& part, int64_t first,
                          run_result& computed) const {
  const rows_in rows{&computed.outputs, first, part.rows};
  if (piece.parts.size() == 1 && part.rows == r.rows) {
    r.result = std::move(computed);
    return;
  }
  if (part.rows == r.rows) // joined with others: a view of what was computed for all
    r.result.outputs = parts_.rows->cut_outputs(rows);
  else // of a request that is cut: copied while other pieces run
    parts_.rows->place_outputs(r.result.outputs, r.rows, part.first_row, rows, parts_.make);
  add(r.result.stats, computed.stats);
}

// -- replicas and time

void stream_state::notice_loss(size_t replica) {
  if (!machine_->replicas().is_living(replica))
    return;
  if (const std::string why = parts_.replicas[replica].out_because(); !why.empty())
    tell([&](stream_machine& m, run_time t) { m.replica_lost(replica, why, t); });
}

void stream_state::join(const device_handle& device) {
  for (size_t r = 0; r < parts_.replicas.size(); ++r) {
    replica& each = parts_.replicas[r];
    const auto place = std::find(each.devices.own.begin(), each.devices.own.end(), device.info.name);
    if (place == each.devices.own.end())
      continue;
    notice_loss(r); // the device may take the place of one that it lost
    each.own.push_back(device.health);
    if (!machine_->replicas().is_living(r))
      tell([&](stream_machine& m, run_time t) { m.replica_joined(r, each.predicted, t); });
  }
}

void stream_state::carry_out(const wake_at& what) {
  self_->delayed_send(self_, std::max<std::chrono::nanoseconds>(what.time - now(), std::chrono::nanoseconds(0)),
                      tick{});
}

stream_stats stream_state::count() const {
  stream_stats all{.answered = answered_,
                   .failed = failed_,
                   .late = late_,
                   .waiting = machine_->waiting(),
                   .in_flight = pieces_.size(),
                   .rows = parts_.rows->symbol(),
                   .whole_because = parts_.rows->whole_because(),
                   .replicas = counted_};
  for (size_t r = 0; r < all.replicas.size(); ++r) {
    replica_stats& each = all.replicas[r];
    each.living = machine_->replicas().is_living(r);
    each.why_not = each.living ? machine_->replicas().why_rests(r) : parts_.replicas[r].out_because();
    if (at_work_[r] > 0)
      each.busy_ms += milliseconds(now() - busy_since_[r]);
    each.row_ms = machine_->replicas().speed(r).figures().row_seconds * 1e3;
    each.piece_ms = machine_->replicas().speed(r).figures().fixed_seconds * 1e3;
  }
  return all;
}

run_time stream_state::now() const {
  return self_->clock().now();
}

} // namespace troupe::actors
