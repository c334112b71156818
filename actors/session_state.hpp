// What a session's handle refers to.
#pragma once

#include "actors/actor_runtime.hpp"
#include "actors/choice_once.hpp"
#include "actors/stream_door.hpp"
#include "run/request.hpp"
#include "troupe/session.hpp"

namespace troupe {

struct session::state {
  state(std::shared_ptr<actors::actor_runtime> r, model_ptr m, strategy s, actors::session_replicas opened,
        std::shared_ptr<actors::request_gate> g = nullptr)
      : runtime(std::move(r)), model(std::move(m)), how(s), replicas(std::move(opened.replicas)),
        rows(std::move(opened.rows)),
        gate_(g ? std::move(g) : std::make_shared<actors::request_gate>(model->options.stream.queue_limit)) {}

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
  /// Returns the state whose queue takes a request that is submitted now: `self`, or what was chosen for the queue.
  /// Has that chosen meanwhile if this is the first request.
  static std::shared_ptr<state> for_queue(const std::shared_ptr<state>& self, const named_tensors& inputs,
                                          const run_options& options);
  /// The same if it was chosen, now if it was not yet; null if there is nothing to choose, or `self` does best. Throws
  /// as `settled` does.
  static std::shared_ptr<state> chosen_for_queue(const std::shared_ptr<state>& self, request_inputs inputs,
                                                 const actors::patience& limits);
  /// Returns the states that have replicas: `self` and what was chosen, as far as there are such.
  static std::vector<std::shared_ptr<state>> at_work(const std::shared_ptr<state>& self);
  /// What was chosen; nullopt if nothing was.
  std::optional<strategy_choice> choice();

  /// Runs on a session without a strategy and waits. `carried`: what the run takes besides; `made`: what it has made of
  /// that.
  run_result run(named_tensors inputs, run_options options, carried_values carried, carried_bundle& made) const;

  /// Starts runs that only prepare (`run_request::only_prepares`) what requests with such inputs need.
  std::vector<std::future<run_result>> prepare(const named_tensors& inputs, const run_options& options) const;

  /// Who answers for the whole session: without a strategy, its only coordinator.
  const actors::coordinator_ref& coordinator() const { return replicas.front().session->actor(); }
  /// A session on one of the replicas alone.
  std::shared_ptr<state> on(const actors::replica& one) const {
    return std::make_shared<state>(runtime, model, strategy::none, actors::session_replicas{{one}, rows});
  }
  /// The queue; made when it is first asked for. Throws `errc::cancelled` if the engine is closed.
  actors::stream_door& door();
  /// The queue, null if no caller has asked for it.
  actors::stream_door* door_if_any();

  const std::shared_ptr<actors::actor_runtime> runtime; // destroyed last: handles of actors need its system
  const model_ptr model;
  const strategy how;
  const std::vector<actors::replica> replicas; // at least one, unless the strategy is automatic
  const std::shared_ptr<const model_rows> rows;
  std::atomic<size_t> next_bound = 0; // the replica of the next bound session
  /// Whether the queue is served by what `strategy::standard` chooses for it.
  bool chooses_for_queue = false;

private:
  static std::future<run_result> prepare_on(const actors::replica& one, named_tensors inputs, run_options options);
  /// Returns what makes tensors in memory that is used again.
  tensor_maker maker() const;

  struct settled_choice {
    std::shared_ptr<state> to; // null: the session itself does the queue's work best
    strategy_choice why;
  };
  /// Returns what chooses for these inputs. It owns what it reads: its request may give up meanwhile, and its caller
  /// change the bytes.
  std::function<settled_choice()> chooser(std::optional<request_inputs> inputs) const;

  const std::shared_ptr<actors::request_gate> gate_;
  std::mutex mutex_; // guards door_
  std::unique_ptr<actors::stream_door> door_;
  actors::choice_once<settled_choice> choice_; // last: it reads the others while it is made
};

/// Calls `wait` with the patience that a run's options allow, and leaves in them what is left of the time. Throws what
/// `time_limit` and `wait` throw.
template <class F>
auto in_time_of(run_options& options, F&& wait) {
  const auto limit = time_limit(options.timeout, "run_options::timeout");
  actors::patience limits{.until = {}, .stop = options.cancel};
  if (limit)
    limits.until = std::chrono::steady_clock::now() + *limit;
  auto result = wait(limits);
  if (limits.until) // a limit of 0 would be none
    options.timeout =
        std::max(std::chrono::ceil<std::chrono::milliseconds>(*limits.until - std::chrono::steady_clock::now()),
                 std::chrono::milliseconds(1));
  return result;
}

} // namespace troupe
