// One attempt at one run: what changes while a plan is executed. Bookkeeping alone; the session machine sends and
// receives.
//
// Life: `start` a segment, `take` its ready chunks, `complete` each; when the segment is finished, start the next one.
// Values that cross are made when the chunk that makes them is taken, and held until the last chunk that reads them has
// been: chunks carry references, devices fill and read what these name (device/moved_value.hpp). An attempt ends early
// by `stop`; chunks that devices still hold are then only counted (`drained`).
#pragma once

#include "plan/cut/ready_set.hpp"
#include "run/commands.hpp"
#include "run/session_plans.hpp"
#include "trace/run_trace.hpp"

namespace troupe {

/// Returns the names of the run's device inputs that its plan uploads elsewhere than where they are.
std::vector<std::string> inputs_wanted_on_host(const run_request& request, const planned_model& planned);

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

  /// Begins a segment on an arena slot: its first chunks are ready.
  void start(bound_plan_ptr bound, uint32_t slot);

  /// Returns the work of the chunk that has been ready longest, counting it as sent: chunks after it on its device may
  /// be ready from then on. Nullopt if none is ready.
  std::optional<chunk_work> take();

  /// Makes one that has begun before the execution of `request`, on that slot; then completes work that it has taken
  /// before.
  void give_inputs(run_request_ptr request, uint32_t slot);
  void give_inputs(chunk_work& work);

  /// Does what can be done of `complete` and `collect_carried` before a chunk has ended. Throws as `complete` does.
  void look_ahead(const chunk_begun& begun);

  /// Takes that a chunk has made its values: other chunks may be ready from then on. Throws `errc::internal` if these
  /// are not as the plan says.
  void complete(chunk_id chunk, chunk_result& result);

  /// Returns whether the chunk has been sent and not ended; then counts it as ended. False: the message is spurious.
  bool end_chunk(chunk_id chunk);
  /// Forgets what a lost device still holds.
  void forget_device(device_index device);

  bool segment_finished() const { return ready_.finished(); }
  /// Returns whether all outputs are there.
  bool outputs_complete() const { return outputs_missing_ == 0; }
  named_tensors collect_outputs() const;
  /// Returns the outputs that the run keeps.
  named_device_tensors collect_kept() const;
  /// Returns whether `look_ahead` has moved what the run hands on out of it.
  bool has_handed_on() const { return carried_ != nullptr; }
  /// Returns those that it hands on (`carried_values`), by pair.
  carried_bundle collect_carried() const;
  /// Returns the outputs in the order of the plan's graph.
  std::vector<tensor> outputs() const;

  /// Returns the operands of a control-flow chunk's node, in its order; undefined if absent.
  std::vector<tensor> control_operands(const chunk_work& work) const;
  /// Says what a control-flow chunk has made: the outputs of its node, in their order.
  void fill_control(chunk_id chunk, std::span<const tensor> results);
  /// Returns the dims that the plan states for a value, 0 where they are not known.
  shape dims_or_empty(value_id v) const;
  /// Adds what an execution of a body cost to this one's costs.
  void add_costs(const execution& body);
  /// Adds what was traced of an execution of a body, if the run is traced; `name` says which it was.
  void add_trace(execution& body, std::string name);
  bool traced() const { return request_->options.trace; }

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
  /// Returns whether no device holds a chunk of this attempt.
  bool drained() const;
  bool on_device(device_index device) const { return in_flight_[device] > 0; }

  /// Returns "chunk 3 (Add 'a' … Relu 'b')".
  std::string describe_chunk(chunk_id chunk) const;
  /// Adds this attempt's times to the request's stats.
  void add_stats() const;
  /// Returns what was traced up to now; empty if the request asks for no trace.
  run_trace take_trace();

private:
  /// Without the values of its inputs.
  execution(run_request_ptr request, prepared_run prepared, completion_mode mode, std::optional<chunk_place> purpose);

  /// Makes the values of the inputs that the request gives.
  void take_inputs();
  /// Takes note of what the request keeps.
  void keep_outputs();
  /// Returns output `i` where it stays.
  device_tensor kept_output(size_t i) const;
  /// Returns output `i` on the host.
  const tensor& output(size_t i) const;
  /// Returns the name of the device that a value in the host's memory is said to be on.
  std::string home_of(value_id v) const;
  /// Returns a value for a chunk that reads it, letting go of it after the last one.
  value_ref use(value_id v);
  /// Returns a value for the chunk to fill that makes it: one of `together`, which has room for the chunk's, if the run
  /// keeps it and that is not null.
  value_ref value_to_make(value_id v, const std::shared_ptr<std::vector<moved_value>>& together) const;
  void check_made(value_id v) const;
  /// Whether the plan's binding states a value's dims.
  bool has_planned_dims(value_id v) const { return source().segment_of_value[v] <= bound_->segment; }
  /// Moves what the run hands on to `carried_` if all of it is there, on a device alone, and nobody else wants it: so
  /// no reference to it is counted, which the next run's threads do at that time.
  void hand_on();

  /// What is known of a value that crosses.
  struct crossing_state {
    value_ref made;          // if it is there, or made now, and still needed
    uint32_t kept = 0;       // as how many outputs the run keeps it
    uint32_t uses_left = 0;  // uploads that have not been taken; outputs count as one more
    bool is_checked = false; // it is as planned
  };
  crossing_state& at(value_id v) { return crossings_[planned()->crossing_of[v]]; }
  const crossing_state& at(value_id v) const { return crossings_[planned()->crossing_of[v]]; }

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
  std::vector<crossing_state> crossings_; // as `planned_model::crossings`
  carried_bundle carried_;                // what the run hands on; null if that was not ahead of its end
  std::vector<size_t> kept_outputs_; // those that the run keeps by name, in the order in which the request names them
  std::vector<bool> sent_;           // by chunk: sent and not ended
  std::vector<uint32_t> in_flight_;  // by device: chunks sent and not ended
  std::vector<int64_t> busy_ns_;     // by device
  std::vector<int64_t> sent_ns_;     // by chunk, if the run is traced; else empty
  std::vector<chunk_trace> traced_;  // chunks that have ended
  std::vector<segment_memory> traced_memory_; // of segments that have begun, if the run is traced
  const int64_t started_ns_ = now_ns();
  std::vector<run_trace> bodies_; // traced executions of bodies
  bool aborted_ = false;
  bool awaits_inputs_ = false;   // see `give_inputs`
  uint32_t outputs_missing_ = 0; // distinct values
};

} // namespace troupe
