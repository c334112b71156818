// What a session's handle refers to.
#pragma once

#include "actors/actor_runtime.hpp"
#include "actors/choice_once.hpp"
#include "actors/stream_door.hpp"
#include "run/request.hpp"
#include "troupe/session.hpp"

namespace troupe {

struct session::state {
  state(std::shared_ptr<actors::actor_runtime> r, model_ptr m, strategy s, actors::session_replicas opened)
      : runtime(std::move(r)), model(std::move(m)), how(s), replicas(std::move(opened.replicas)),
        rows(std::move(opened.rows)) {}

  /// Inputs of a request that choices are made for.
  struct request_inputs {
    named_tensors tensors;
    named_device_tensors residents;
  };

  /// Returns the state that does a request's work: `self`, or if its strategy is automatic what was chosen for the
  /// first request, `inputs`; none: for one of which nothing is known. Throws what choosing throws; then the next
  /// request's is tried.
  static std::shared_ptr<state> settled(const std::shared_ptr<state>& self, std::optional<request_inputs> inputs,
                                        const actors::patience& limits);
  /// The same, null if nothing was chosen yet.
  static std::shared_ptr<state> settled_if_any(const std::shared_ptr<state>& self);
  /// What was chosen; nullopt if nothing was.
  std::optional<strategy_choice> choice();

  /// Runs on a session without a strategy and waits. `carried`: what the run takes besides; `made`: what it has made of
  /// that.
  run_result run(named_tensors inputs, run_options options, carried_values carried, carried_bundle& made) const;

  /// Starts a run on a replica that only prepares (`run_request::only_prepares`).
  static std::future<run_result> prepare(const actors::replica& on, named_tensors inputs, run_options options);

  /// Who answers for the whole session: without a strategy, its only coordinator.
  const actors::coordinator_ref& coordinator() const { return replicas.front().session->actor(); }
  /// A session on one of the replicas alone.
  std::shared_ptr<state> on(const actors::replica& one) const {
    return std::make_shared<state>(runtime, model, strategy::none, actors::session_replicas{{one}, rows});
  }
  /// The queue; made when it is first asked for. Throws `errc::cancelled` if the engine is closed.
  actors::stream_door& door();
  /// The queue, null if nobody asked for it.
  actors::stream_door* door_if_any();

  const std::shared_ptr<actors::actor_runtime> runtime; // destroyed last: handles of actors need its system
  const model_ptr model;
  const strategy how;
  const std::vector<actors::replica> replicas; // at least one, unless the strategy is automatic
  const std::shared_ptr<const model_rows> rows;
  std::atomic<size_t> next_bound = 0; // the replica of the next bound session

private:
  /// Returns what makes tensors in memory that is used again.
  tensor_maker maker() const;

  std::mutex mutex_; // guards door_
  std::unique_ptr<actors::stream_door> door_;
  struct settled_choice {
    std::shared_ptr<state> to;
    strategy_choice why;
  };
  actors::choice_once<settled_choice> choice_; // last: it reads the others while it is made
};

} // namespace troupe
