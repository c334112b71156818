// A session as a state machine: what is reported to it, and the time, go in; commands come out (run/commands.hpp). No
// actors, no threads, no devices: the coordinator (actors/) is one shell around it, a test or a simulator another.
//
// The session routes events to the machines that it is made of (`session_parts`), and empties the agenda at the end of
// each event. `attempts` decides how runs begin, go on and end well, `recovery` what happens otherwise; each of the
// others decides one thing. Calls go one way, from these two down; what leads back to them (a run starts over, a
// segment follows, runs that wait are woken) is put on the agenda. So no function is entered again from within.
//
// `session_plans` decides what is executed, the plan where, `ready_set` when. Several executions are in flight side by
// side, each on an arena slot of its own. Each run is answered exactly once.
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
// Not thread-safe.
#pragma once

#include "run/attempts.hpp"

namespace troupe {

class session_machine {
public:
  /// `devices` are those of the engine, in the order in which plans and events number them, each with an account whose
  /// listener leads to `on_memory_changed`. The machine becomes the only user of `plans`. `follows_speeds`: plans
  /// follow what the speeds of devices turn out to be, where that is possible (run/plan_changes.hpp).
  session_machine(const std::vector<device_info>& devices, ledger_accounts accounts,
                  std::shared_ptr<session_plans> plans, completion_mode completion, bool follows_speeds = false);

  // -- what happens; `set_time` before a run starts and before `tick`; if speeds are followed, before all that happens

  void set_time(run_time now) {
    now_ = now;
    s_.changes.set_time(now);
  }
  void start_run(const run_request_ptr& request);
  void on(const chunk_begun& begun) { attempts_.on(begun); }
  void on(chunk_ended& ended);
  void on(size_t device, const plan_installed& answer);
  void on(tensor_fetched& answer);
  void on(const continue_control& next);
  void on(const planned& answer);
  /// Asks for the first segment that a run with these inputs would use; answered with `query_answer`.
  void ask_plan(uint64_t query, const named_tensors& inputs);
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
  void close() { s_.installed.retire_all(); }

  /// Swaps `into` with the commands since the last call; its old content is dropped. To be called after each event.
  void take_commands(std::vector<command>& into);
  /// Does what no answer waits for: frees what the attempt that ended last held, and has the run that is likely to
  /// follow the one that has begun last bound and installed. To be called when the commands are carried out. Returns
  /// whether it has made others.
  bool use_spare_time();

  // -- what a shell asks

  /// Calls `visit(i, value, made_by)` for each value that a chunk in flight makes and that is still needed: `i` is its
  /// position among the chunk's downloads. For a recorder, which keeps what devices say in them.
  template <class Visit>
  void for_each_made(const chunk_place& place, Visit&& visit) const {
    const execution* const e = s_.book.find(place.execution);
    if (!e || !e->bound() || !e->in_flight().contains(place.chunk))
      return;
    const std::vector<value_id>& downloads = e->source().chunks[place.chunk].downloads;
    for (uint32_t i = 0; i < downloads.size(); ++i)
      if (const value_ref& value = e->values().made(downloads[i]))
        visit(i, *value, *e);
  }

  session_stats stats() const { return s_.plans->stats(); }
  /// Returns whether no run is in flight.
  bool idle() const { return s_.book.empty(); }
  /// Returns whether the device owes an answer.
  bool has_work(size_t device) const;
  /// Returns the earliest deadline of a run in flight.
  std::optional<run_time> next_deadline() const;

private:
  /// Empties the agenda, at the end of an event.
  void settle();
  /// Ends a run early, whatever it waits for.
  void end_run(const run_request_ptr& request, const failure& why);

  session_parts s_;
  recovery recovery_;
  attempts attempts_;
  run_time now_;
};

} // namespace troupe
