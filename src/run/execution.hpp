// One attempt at one run: what changes while a plan is executed. Bookkeeping alone; the session machine sends and
// receives. Its values and its costs have their own classes.
//
// Life: `start` a segment, `take` its ready chunks, `complete` each; when the segment is finished, start the next one.
// An attempt ends early by `stop`; chunks that devices still hold are then only counted (`in_flight`).
#pragma once

#include "plan/cut/ready_set.hpp"
#include "run/chunk_batches.hpp"
#include "run/chunks_in_flight.hpp"
#include "run/execution_costs.hpp"
#include "run/execution_values.hpp"
#include "run/session_plans.hpp"

namespace troupe {

class execution {
public:
  /// Takes the model's inputs from `request`; copies share bytes. Inputs on devices must be on the host too if
  /// `inputs_wanted_on_host` says so.
  execution(run_request_ptr request, prepared_run prepared, completion_mode mode);
  /// One that begins before its request is there, which carries values between `pairs` and keeps no others:
  /// `give_inputs`.
  execution(prepared_run prepared, std::shared_ptr<const std::vector<carried_pair>> pairs, completion_mode mode);
  /// One execution of a body, for a control-flow chunk of another execution; `inputs` are the body's.
  execution(run_request_ptr request, prepared_run prepared, completion_mode mode, const chunk_place& purpose,
            std::vector<tensor> inputs);
  ~execution() { stop(); }
  execution(const execution&) = delete;
  execution& operator=(const execution&) = delete;

  execution_id id() const { return id_; }
  const run_request_ptr& request() const { return request_; }
  const planned_model_ptr& planned() const { return prepared_.source; }
  const plan& source() const { return *prepared_.source->compiled; }
  /// The control-flow chunk that waits for this execution; nullopt for the execution of the model.
  const std::optional<chunk_place>& purpose() const { return purpose_; }
  /// The segment that runs now; null between two.
  const bound_plan_ptr& bound() const { return bound_; }
  uint32_t slot() const { return slot_; }
  /// What is executed; its symbols are all that are known so far: what the next segment is bound to.
  prepared_run& prepared() { return prepared_; }
  const execution_values& values() const { return values_; }
  execution_costs& costs() { return costs_; }

  /// Begins a segment on an arena slot: its first chunks are ready.
  void start(bound_plan_ptr bound, uint32_t slot);

  /// Returns the work of the chunk that has been ready longest, counting it as sent: chunks after it on its device may
  /// be ready from then on, and with `peers_wait` those on peers of it. Nullopt if none is ready.
  std::optional<chunk_work> take(bool peers_wait = false);
  /// Returns whether a chunk that was taken waits, on its device, for chunks on peers that were taken before.
  bool awaits_peers(chunk_id chunk) const { return ready_.awaits_peers(chunk); }

  /// Makes one that has begun before the execution of `request`, on that slot; completes `works`, which it has taken
  /// before.
  void give_inputs(run_request_ptr request, uint32_t slot, std::vector<device_batch>& works);

  /// Does what can be done of `complete`, and of collecting what it hands on, before a chunk has ended. Throws as
  /// `complete` does.
  void look_ahead(const chunk_begun& begun);

  /// Called when a chunk has made its values: other chunks may be ready from then on. If chunks before it, which its
  /// device has waited for itself, have not ended, it counts when they have. Throws `errc::internal` if the values are
  /// not as the plan says.
  void complete(chunk_id chunk, chunk_result& result);

  /// What devices hold of this attempt.
  chunks_in_flight& in_flight() { return in_flight_; }
  const chunks_in_flight& in_flight() const { return in_flight_; }

  bool segment_finished() const { return ready_.finished(); }
  /// Gives up bound plan and slot.
  void leave_segment() { bound_ = nullptr; }

  /// Ends the attempt: devices drop chunks that they still hold.
  void stop() { stop_->store(true); }
  bool stopped() const { return stop_->load(); }
  /// Ends the attempt before its outputs are there.
  void abort() {
    aborted_ = true;
    stop();
  }
  bool aborted() const { return aborted_; }

private:
  /// Without the values of its inputs.
  execution(run_request_ptr request, prepared_run prepared, completion_mode mode, std::optional<chunk_place> purpose);
  void count_as_complete(chunk_id chunk, chunk_result& result);

  const execution_id id_;
  run_request_ptr request_;
  prepared_run prepared_;
  const std::optional<chunk_place> purpose_;
  bound_plan_ptr bound_;
  uint32_t slot_ = 0;
  ready_set ready_;
  std::vector<chunk_id> ready_chunks_; // those from `next_` on have not been taken
  size_t next_ = 0;
  std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
  execution_values values_;
  execution_costs costs_;
  std::map<chunk_id, chunk_result> early_; // of chunks that have ended before those that their devices waited for
  chunks_in_flight in_flight_;
  bool aborted_ = false;
};

/// Returns "chunk 3 (Add 'a' … Relu 'b')".
std::string describe_chunk(const plan& source, chunk_id chunk);

} // namespace troupe
