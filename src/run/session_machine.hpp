// A session as a state machine: what is reported to it, and the time, go in; commands come out (run/commands.hpp). No
// actors, no threads, no devices: the coordinator (actors/) is one shell around it, a test or a simulator another.
//
// `session_plans` decides what is executed, the plan where, `ready_set` when; the machine translates: a run into an
// execution, ready chunks into `run_chunks`, each `chunk_ended` into the chunks that it makes ready. Several executions
// are in flight side by side, each on an arena slot of its own. Each run is answered exactly once.
//
// Plans are made elsewhere: what is not there is asked for (`plan_wanted`), and the run that wants it goes on after
// `planned`.
//
// Failure: a chunk that fails ends its run with one error that names the device. If a device is lost, every execution
// on it is planned again on the devices left and starts over from the kept inputs, under a new execution id, so that
// late reports of the old attempt find nothing.
//
// Control flow: a chunk on a device of kind `control` is executed here, body by body, each an execution of its own that
// says for which chunk it is (`execution::purpose`). All executions of a run share its request: they fail, are
// cancelled and start over together.
//
// An execution that ended early stays in the book until its last chunk is answered: only then is its slot free.
// Not thread-safe.
#pragma once

#include "run/control_flow.hpp"
#include "run/execution.hpp"
#include "run/installations.hpp"
#include "run/run_ahead.hpp"

#include <deque>

namespace troupe {

class session_machine {
public:
  /// `devices` are those of the engine, in the order in which plans and events number them, each with an account whose
  /// listener leads to `on_memory_changed`. The machine becomes the only user of `plans`.
  session_machine(const std::vector<device_info>& devices, ledger_accounts accounts,
                  std::shared_ptr<session_plans> plans, completion_mode completion);

  // -- what happens; `set_time` before a run starts and before `tick`

  void set_time(run_time now) { now_ = now; }
  void start_run(const run_request_ptr& request);
  void on(const chunk_begun& begun);
  void on(chunk_ended& ended);
  void on(size_t device, const plan_installed& answer);
  void on(tensor_fetched& answer);
  void on(const continue_control& next);
  void on(const planned& answer);
  /// Asks for the first segment that a run with these inputs would use; answered with `query_answer`.
  void ask_plan(uint64_t query, const named_tensors& inputs) { answer_query(query, inputs, {}); }
  /// Ends a run with `errc::cancelled`; nothing if it has ended.
  void cancel(uint64_t ticket);
  /// Takes a device out for good; its runs start over on those left.
  void lose_device(size_t device, const std::string& why);
  /// A device leaves in order: as soon as another one is left, runs that begin use it no more, while those in flight go
  /// on there. When nothing of the session needs it: `let_device_go`. It still gives values back, until it is lost.
  void leave_device(size_t device, const std::string& why);
  /// Adds a device after the others; runs that begin from now on may use it.
  void add_device(const device_info& device, std::shared_ptr<ledger_account> account);
  /// Another session waits for memory, or gives some back.
  void on_memory_changed();
  /// Ends runs whose deadline has come.
  void tick();
  /// Retires all plans; no run may be in flight.
  void close() { installed_.retire_all(); }

  /// Swaps `into` with the commands since the last call; its old content is dropped. To be called after each event.
  void take_commands(std::vector<command>& into);
  /// Does what no answer waits for: frees what the attempt that ended last held, and has the run that is likely to
  /// follow the one that has begun last bound and installed. To be called when the commands are carried out. Returns
  /// whether it has made others.
  bool use_spare_time();

  // -- what a shell asks

  session_stats stats() const { return plans_->stats(); }
  /// Returns whether no run is in flight.
  bool idle() const {
    return executions_.empty() && fetching_.empty() && waiting_.empty() && runs_that_wait_for_plans().empty();
  }
  /// Returns whether the device owes an answer.
  bool has_work(size_t device) const;
  /// Returns the earliest deadline of a run in flight.
  std::optional<run_time> next_deadline() const;

private:
  /// What the machine knows of a device.
  struct device_state {
    std::string name;
    uint64_t incarnation = 0;
    std::string lost_because;   // empty while it lives
    std::string leaves_because; // empty unless it leaves
    bool is_out = false;        // it leaves, and new plans do not use it
    bool let_go = false;        // … nor does anything else
  };

  /// A control-flow chunk that has begun.
  struct running_control {
    chunk_work work;                  // until the flow begins
    std::optional<control_flow> flow; // null before that
    int64_t started_ns = 0;
  };

  /// A run that waits for host copies of inputs that are on devices.
  struct fetching_run {
    run_request_ptr request;
    std::map<std::string, size_t> awaited; // input → device
  };

  /// What goes on after a job has ended: a run begins, an execution's segment, a body, a question is answered.
  struct begin_run {
    run_request_ptr request;
  };
  struct begin_segment {
    execution_id execution = 0;
    uint32_t segment = 0;
  };
  struct begin_body {
    chunk_place place;
  };
  struct begin_answer {
    uint64_t query = 0;
    named_tensors inputs;
  };
  struct install_ahead {
    prepared_run next;
    execution_id after = 0;
  };
  struct plan_wish {
    std::variant<begin_run, begin_segment, begin_body, begin_answer, install_ahead> what;
    plan_outcome made; // by the jobs that it has waited for
  };
  struct running_job {
    plan_job job;
    plan_wish wish;
  };

  // -- runs (session_machine.cpp); `made`: how the jobs that they have waited for ended
  void answer(run_request& request, run_result result, failure why = {});
  void start_attempt(const run_request_ptr& request, const plan_outcome& made = {});
  void start_segment(execution& e, uint32_t segment, const plan_outcome& made = {});
  void advance(execution& e);
  void dispatch(execution& e);
  void finish(execution& e);
  void drain(execution& e);
  void leave_segment(execution& e);
  template <class Order>
  void send(size_t device, Order&& order) {
    commands_.push_back(device_order{device, std::forward<Order>(order)});
  }
  /// Throws `errc::device_lost`, naming all, if no device is left.
  void check_device_left() const;

  // -- control flow (session_control.cpp)
  /// Begins a control-flow chunk that is ready; `on(continue_control)` then executes its bodies one after the other.
  void start_control(execution& e, chunk_work work);
  void go_on(const chunk_place& place, const plan_outcome& made);
  void start_body(execution& e, const chunk_place& place, control_flow::body_call call, const plan_outcome& made);
  /// Returns the bytes that the run's executions use now, by device of the plan.
  std::vector<int64_t> memory_of(const run_request_ptr& request) const;
  void finish_body(execution& e);
  void finish_control(execution& e, const chunk_place& place);
  /// Returns "Loop 'x', iteration 3: " for an execution of a body, through all levels from the model's on.
  std::string position_of(const execution& e) const;

  // -- plans (session_planning.cpp)
  /// Has `job` done, now or after those that others wait for; then `wish` goes on.
  void want(plan_wish wish, plan_job job);
  void fulfil(const plan_wish& wish);
  void fulfil(const begin_run& run, const plan_outcome& made);
  void fulfil(const begin_segment& next, const plan_outcome& made);
  void fulfil(const begin_body& body, const plan_outcome& made) { go_on(body.place, made); }
  void fulfil(const begin_answer& q, const plan_outcome& made) { answer_query(q.query, q.inputs, made); }
  void fulfil(const install_ahead& ahead, const plan_outcome& made);
  /// Makes the run ready that is likely to follow an execution in flight, if that hands values on.
  void make_ahead(prepared_run next, execution_id after);
  /// Takes that an execution knows what it hands on.
  void expect_next(const execution& before);
  /// Begins the run that was made ahead, if it is the one that is asked for; else what was made ahead goes. Returns
  /// null if nothing has begun.
  execution* begin_ahead(const run_request_ptr& request);
  void answer_query(uint64_t query, const named_tensors& inputs, const plan_outcome& made);
  /// Returns the runs that cannot begin before a plan is made.
  std::vector<run_request_ptr> runs_that_wait_for_plans() const;

  // -- inputs that are on devices (session_fetches.cpp)
  /// Throws if the run's inputs or kept outputs are not the model's, or an input is on a device that is gone.
  void check_request(run_request& request) const;
  /// Makes those device inputs ordinary ones that are in the host's memory; throws if one is on a device that is gone.
  void check_residents(run_request& request) const;
  /// Throws if an input's value is in the memory of no device that lives, and the host has no copy.
  void check_home(const run_request& request, const std::string& input, const resident& value) const;
  /// Returns a run's input that is on a device; null if it is not.
  device_tensor resident_of(const run_request& request, const std::string& input) const;
  /// Asks for host copies of all device inputs; answers when they are there.
  void fetch_all(const run_request_ptr& request);
  /// Asks for host copies of the device inputs `names` that have none yet; returns whether there are such: then the
  /// attempt is started again when they have come.
  bool await_host_copies(const run_request_ptr& request, const std::vector<std::string>& names);
  /// Ends a run that waits for host copies; returns whether it does.
  bool end_fetching(uint64_t ticket, const failure& why);
  bool fetches_from(size_t device) const;
  /// Returns the runs that wait for host copies from `device`, taking them out of the book.
  std::vector<run_request_ptr> take_fetching_from(size_t device);
  /// Returns the index of the device that a value is on, lost or not; the count of devices if there is none.
  size_t home_of(const resident& value) const;

  // -- memory (session_memory.cpp)
  /// Returns an arena slot for an execution of `bound`, on which devices have it from now on. If there is no memory for
  /// it: lets go of bound plans that no run uses; if that is not enough and other runs, or sessions, hold what is
  /// missing, lets the run wait and returns nullopt.
  std::optional<uint32_t> take_slot(const execution& e, const bound_plan_ptr& bound);
  /// Returns whether others are first: runs that wait, or sessions that lack memory which is held here.
  bool must_wait() const { return !waiting_.empty() || installed_.others_lack(); }
  /// Lets go of bound plans that no run uses, least recently used first, while other sessions lack memory; gives back
  /// what is freed.
  void share_memory();
  void wait(const run_request_ptr& request);
  /// If a device lacked memory for its part of a bound plan: lets go of bound plans that no run uses, or, if that was
  /// not it, plans with less memory; starts the bound plan's executions over. Returns whether that was the failure.
  bool make_room(size_t device, const bound_plan_ptr& bound, const failure& why);
  /// Starts an execution over whose next segment does not fit, by a plan in which it does; between segments nothing of
  /// it is in flight. A body's alone starts over if its plan is for the devices as they are. Throws if there is no such
  /// plan.
  void start_over_spilled(execution& e, const memory_shortage& why);
  /// If other runs are in flight, whose memory comes back: lets the execution's run wait until one of them has ended.
  /// Returns whether it waits.
  bool wait_for_memory(const execution& e);
  /// Returns whether executions of other runs are in the book: each wakes those that wait when it ends.
  bool others_in_flight(const run_request_ptr& request) const;
  /// Ends a run that waits for memory; returns whether it does. Those after it may have room if it had none.
  bool end_waiting(uint64_t ticket, const failure& why);
  /// Starts the runs that wait for memory again, the first first, until one has to wait. `ended` is the run of an
  /// execution that has left the book, or null: if it waits itself, for what others hold, it goes on waiting for them.
  /// None while other sessions lack memory.
  void resume_waiting(const run_request_ptr& ended);
  void let_go(uint64_t bound_plan) {
    plans_->forget_bound_plan(bound_plan);
    retire_evicted();
  }
  void retire_evicted() { installed_.evict(plans_->take_evicted()); }

  // -- devices that leave (session_leaving.cpp)
  /// Takes those that leave out of new plans if another device is left.
  void take_out_leaving();
  /// Lets those go that nothing needs any more.
  void let_devices_go();
  bool needs(size_t device) const;

  // -- ends before the end (session_failures.cpp)
  void end_early(execution& e, const failure& why);
  /// Ends what still goes on for a run that has been answered: its execution and those of bodies.
  void end_all(const run_request_ptr& request);
  /// Says to the devices that hold chunks of an execution that it ended early: the flag that chunks share does not
  /// reach other hosts.
  void tell_stopped(const execution& e);
  /// Starts a run over from its inputs, by a plan for the devices as they are.
  void start_over(const run_request_ptr& request);
  /// Starts the runs over that execute a bound plan which a device refuses because it has no kernel for the dims, by
  /// plans for these dims; those for which there is none end for the reason `why`.
  void plan_exactly(const bound_plan_ptr& bound, const failure& why);
  /// Calls `work(execution)` for those that run a bound plan and have not ended early, also if that ends others of
  /// them.
  template <class Work>
  void for_each_running(uint64_t bound_plan, Work work) {
    for (execution_id id :
         executions_where([&](const execution& e) { return !e.stopped() && e.bound() && e.bound()->id == bound_plan; }))
      if (const auto e = executions_.find(id); e != executions_.end() && !e->second->stopped())
        work(*e->second);
  }
  /// Returns the executions for which `which(execution)` holds; what is done to them may change the book.
  template <class Predicate>
  std::vector<execution_id> executions_where(Predicate which) const {
    std::vector<execution_id> ids;
    for (const auto& [id, e] : executions_)
      if (which(*e))
        ids.push_back(id);
    return ids;
  }
  /// Returns the plan's index of a session's device; nullopt if the plan does not use it.
  static std::optional<device_index> index_in(const planned_model& planned, size_t device);

  std::vector<command> commands_;
  const std::shared_ptr<session_plans> plans_;
  const completion_mode completion_;
  run_time now_;
  std::vector<device_state> devices_;
  size_t leaving_ = 0; // devices that have not been let go, nor lost
  installations installed_;
  std::unordered_map<execution_id, std::unique_ptr<execution>> executions_;
  std::unique_ptr<execution> ended_; // the last one
  std::unique_ptr<run_ahead> ahead_; // null: none
  /// Whether the run that ended last knew ahead what it hands on: what is made ahead can follow no others.
  bool hands_on_ = false;
  execution_id begun_ = 0; // the last one of a model, if nothing has been made ahead for it; 0: none
  std::unordered_map<uint64_t, fetching_run> fetching_; // by ticket
  std::map<chunk_place, running_control> controls_;
  std::vector<run_request_ptr> waiting_; // for memory that other runs hold
  std::optional<running_job> job_;       // in flight
  uint64_t jobs_ = 0;                    // begun so far
  std::deque<plan_wish> wishes_;         // that look their plan up again after it
  std::vector<run_chunks> batches_;      // scratch of `dispatch`, by plan device; empty outside of it …
  std::vector<device_index> batched_;    // … those that are not
  bool memory_moved_ = true; // who waits for memory, here or elsewhere, may be others than when it was shared last
};

} // namespace troupe
