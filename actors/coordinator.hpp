// The actor that runs a session's model: it answers each `run` by sending the chunks of a plan to device actors.
//
// `session_plans` decides what is executed, `plan` where, `ready_set` when; the coordinator translates: a `run` into an
// execution, ready chunks into `run_chunks`, each `chunk_ended` into the chunks it makes ready. Several executions are in
// flight side by side, each on an arena slot of its own.
//
// Failure: a chunk that fails ends its run with one error that names the device. A device is lost when it says so, when its
// actor dies, or when it has work and is silent for the device timeout; every execution on it is planned again on the devices
// left and starts over from the kept inputs, under a new execution id, so that late messages of the old attempt find nothing.
//
// Control flow: a chunk on a device of kind `control` is executed here, body by body, each an execution of its own that says for
// which chunk it is (`execution::purpose`). All executions of a run share its request: they fail, are cancelled and start over
// together.
//
// An execution that ended early stays in the book until its last chunk is answered: only then is its slot free.
#pragma once

#include "actors/control_flow.hpp"
#include "actors/execution.hpp"
#include "actors/time_limits.hpp"

namespace troupe::actors {

/// What a coordinator is made of.
struct coordinator_options {
  std::vector<device_handle> devices;
  std::shared_ptr<session_plans> plans; // the coordinator becomes its only user
  completion_mode completion = completion_mode::device;
  std::chrono::milliseconds device_timeout{0};
};

class coordinator_state {
public:
  static constexpr const char* name = "troupe.coordinator";
  using pointer = coordinator_ref::stateful_pointer<coordinator_state>;

  coordinator_ref::behavior_type behavior(pointer self, coordinator_options options);

private:
  using clock = std::chrono::steady_clock;

  /// A bound plan on its devices.
  struct installation {
    bound_plan_ptr bound;
    planned_model_ptr planned;
    uint32_t in_use = 0; // executions that run it
    bool evicted = false;
    clock::time_point started;
    uint32_t pending = 0; // devices that have not answered
  };

  /// Arena slots of a layout, for the executions of all its bound plans.
  struct slot_pool {
    std::vector<uint32_t> free;
    uint32_t count = 0;         // handed out so far
    uint32_t installations = 0; // of bound plans with this layout
    arena_layout_ptr layout;
    planned_model_ptr planned;
  };

  /// What the coordinator knows of a device.
  struct device_state {
    device_handle handle;
    std::string lost_because; // empty while it lives
    silence_watch watch;
    std::vector<uint64_t> installing; // bound plans whose install it has not answered, retired ones included
  };

  // -- runs (coordinator.cpp)
  void start_run(const run_request_ptr& request);
  void start_attempt(const run_request_ptr& request);
  void start_segment(execution& e, uint32_t segment);
  void advance(execution& e);
  void dispatch(execution& e);
  void on_chunk(chunk_ended& ended);
  void finish(execution& e);
  void drain(execution& e);
  /// Where the session is being closed: sees behind this message whether anything is left to do. Not before its end, because a run
  /// that starts over is in no book meanwhile.
  void close_when_idle();
  void quit_if_idle();
  void answer_query(plan_query& query);

  // -- control flow (coordinator_control.cpp)
  /// Begins a control-flow chunk that is ready; `go_on` then executes its bodies one after the other.
  void start_control(execution& e, chunk_work work);
  void go_on(const chunk_place& place);
  void start_body(execution& e, const chunk_place& place, control_flow::body_call call);
  /// Returns the bytes that the run's executions use now, by device of the plan.
  std::vector<int64_t> memory_of(const run_request_ptr& request) const;
  void finish_body(execution& e);
  void finish_control(execution& e, const chunk_place& place);
  /// Returns "Loop 'x', iteration 3: " for an execution of a body, through all levels from the model's on.
  std::string position_of(const execution& e) const;

  // -- inputs that lie on devices (coordinator_fetches.cpp)
  /// Throws where an input is given twice. Later it may be there twice: host copies are kept beside.
  static void check_given_once(const run_request& request);
  /// Throws where the run's inputs or kept outputs are not the model's, or an input lies on a device that is gone.
  void check_request(run_request& request) const;
  /// Asks for host copies of the device inputs `names` that have none yet; returns whether there are such: then the attempt is
  /// started again when they have come.
  bool await_host_copies(const run_request_ptr& request, const std::vector<std::string>& names);
  void on_fetched(tensor_fetched& answer);
  /// Ends a run that waits for host copies; returns whether it does.
  bool end_fetching(uint64_t ticket, const failure& why);
  /// Returns the runs that wait for host copies from `device`, taking them out of the book.
  std::vector<run_request_ptr> take_fetching_from(size_t device);
  /// Returns the index of an engine's device by name; the count of devices where there is none.
  size_t device_called(const std::string& name) const;

  // -- installations (coordinator_installs.cpp)
  /// Keeps to the devices' limits: where an execution of `bound` needs memory that is not there, lets go of bound plans that nobody
  /// runs; where that is not enough and other runs are in flight, lets the execution's run wait. Returns whether it goes on.
  bool reserve(const execution& e, const bound_plan& bound);
  /// Returns whether what the session's bound plans hold, and one more slot for `bound`, is within every device's limit.
  bool fits(const planned_model& planned, const bound_plan& bound) const;
  /// Lets go of bound plans that nobody runs, `wanted` aside: it is about to run.
  void retire_idle(uint64_t wanted);
  installation& install(const bound_plan_ptr& bound, const planned_model_ptr& planned);
  void on_installed(const plan_installed& answer);
  uint32_t take_slot(installation& i);
  void leave_segment(execution& e);
  void retire_evicted();
  void retire(uint64_t bound_plan);

  // -- ends before the end (coordinator_failures.cpp)
  void cancel(uint64_t ticket);
  void end_early(execution& e, const failure& why);
  /// Ends what still goes on for a run that has been answered: its execution and those of bodies.
  void end_all(const run_request_ptr& request);
  void lose_device(size_t device, const std::string& why);
  /// Starts a run over from its inputs, by a plan for the devices as they are.
  void start_over(const run_request_ptr& request);
  /// Where a device lacked memory for its part of a bound plan: lets go of bound plans that nobody runs, or, where that was not
  /// it, plans with less memory; starts the bound plan's executions over. Returns whether that was the failure.
  bool make_room(size_t device, const bound_plan_ptr& bound, const failure& why);
  /// Starts the runs over that execute a bound plan which a device refuses because it has no kernel for the dims, by plans for these
  /// dims; those for which there is none end for the reason `why`.
  void plan_exactly(const bound_plan_ptr& bound, const failure& why);
  /// Starts an execution over whose next segment does not fit, by a plan in which it does; between segments nothing of it is in
  /// flight. A body's alone starts over, where its plan is for the devices as they are. Throws where there is no such plan.
  void start_over_spilled(execution& e, const memory_shortage& why);
  /// Where other runs are in flight, whose memory comes back: lets the execution's run wait until one of them has ended.
  /// Returns whether it waits.
  bool wait_for_memory(const execution& e);
  /// Returns whether executions of other runs are in the book: each wakes those that wait when it ends.
  bool others_in_flight(const run_request_ptr& request) const;
  /// Ends a run that waits for memory; returns whether it does. Those behind it may have room where it had none.
  bool end_waiting(uint64_t ticket, const failure& why);
  /// Starts the runs that wait for memory again, the first first, until one has to wait. `ended` is the run of an execution that has
  /// left the book, or null: where it waits itself, for what others hold, it goes on waiting for them.
  void resume_waiting(const run_request_ptr& ended);
  void notice_lost_devices();
  void on_down(const caf::down_msg& down);
  void on_tick();
  void check_deadlines(clock::time_point now);
  void check_devices(clock::time_point now);
  void arm_tick(clock::time_point at);
  /// Sees to it that devices are looked at while runs are in flight.
  void watch_devices();
  bool has_work(size_t device) const;
  /// Throws `errc::device_lost`, naming all, where no device is left.
  void check_device_left() const;
  clock::time_point now() const;
  /// Returns the executions for which `which(execution)` holds; handlers change the book while they go through them.
  template <class Predicate>
  std::vector<execution_id> executions_where(Predicate which) const {
    std::vector<execution_id> ids;
    for (const auto& [id, e] : executions_)
      if (which(*e))
        ids.push_back(id);
    return ids;
  }
  /// Returns the plan's index of an engine's device; nullopt where the plan does not use it.
  static std::optional<device_index> index_in(const planned_model& planned, size_t device);

  /// A control-flow chunk that has begun.
  struct running_control {
    chunk_work work;                  // until the flow begins
    std::optional<control_flow> flow; // null before that
    int64_t started_ns = 0;
  };

  /// A run that waits for host copies of inputs that lie on devices.
  struct fetching_run {
    run_request_ptr request;
    std::map<std::string, size_t> awaited; // input → device
  };

  pointer self_ = nullptr;
  coordinator_options options_;
  std::vector<device_state> devices_; // by index among the engine's devices
  std::unordered_map<execution_id, std::unique_ptr<execution>> executions_;
  std::unordered_map<uint64_t, fetching_run> fetching_;      // by ticket
  std::unordered_map<uint64_t, installation> installations_; // by bound plan id
  std::unordered_map<uint64_t, slot_pool> slots_;            // by layout id
  std::map<chunk_place, running_control> controls_;
  std::vector<run_request_ptr> waiting_; // for memory that other runs hold
  std::vector<run_chunks> batches_;      // scratch of `dispatch`, by plan device; empty outside of it
  std::optional<clock::time_point> next_tick_;
  bool closing_ = false;
};

/// The behaviour; spawn it with CAF.
coordinator_ref::behavior_type coordinator(coordinator_state::pointer self, coordinator_options options);

} // namespace troupe::actors
