// The actor of a session: a shell around the session machine (src/run). It tells the machine what is reported and what
// time it is, and does what the machine asks for: orders go to device actors, answers to callers. It also looks for
// devices that have fallen silent.
#pragma once

#include "actors/entry.hpp"
#include "actors/silence_watch.hpp"
#include "recording/recorded_machine.hpp"

#include <unordered_map>

namespace troupe::actors {

/// What a coordinator is made of.
struct coordinator_options {
  std::vector<device_handle> devices;
  std::shared_ptr<session_plans> plans; // the coordinator becomes its only user
  planner_ref planner;                  // ends with the coordinator
  completion_mode completion = completion_mode::device;
  std::chrono::milliseconds device_timeout{0};
  bool follows_speeds = true;                           // of devices, where that is possible (run/plan_changes.hpp)
  std::unique_ptr<recording::recorder> notes = nullptr; // null: nothing is recorded
};

class coordinator_state {
public:
  static constexpr const char* name = "troupe.coordinator";
  using pointer = coordinator_ref::stateful_pointer<coordinator_state>;

  coordinator_ref::behavior_type behavior(pointer self, coordinator_options options);

private:
  friend class entry<coordinator_state>;

  /// Answers who is asking when a handler throws: the caller of a run; all of them if the session itself is broken.
  void failed(const run& message, const failure& why) { end_one(message.pending->result, why); }
  void failed(const plan_query_message& message, const failure& why) { end_one(message.query->result, why); }
  void failed(const session_query_message& message, const failure& why) { end_one(message.query->result, why); }
  template <class Message>
  void failed(const Message&, const failure& why) {
    end_broken(why);
  }
  template <class Answer>
  void end_one(Answer& caller, const failure& why) {
    caller.fail(why);
    if (telling_)
      end_broken(why);
  }
  void end_broken(const failure& why);
  void end(caf::exit_reason why);
  /// Calls `event(machine)` at the session's time and does what the machine asks for; ends a closed session that is
  /// idle.
  template <class Event>
  void tell(Event&& event);
  void carry_out_all();
  void carry_out(device_order& order);
  void carry_out(const abandon_device& lost);
  void carry_out(const let_device_go& gone) { needed_[gone.device] = nullptr; }
  void carry_out(run_answer& answer);
  void carry_out(query_answer& answer);

  void join(const device_handle& device);
  void leave(const device_leaves& leaving);
  void lose(const caf::actor_addr& ended);
  void start_run(const pending_run_ptr& run);
  void on_tick();
  /// Tells the machine of devices that others have lost.
  void notice_lost_devices();
  void check_silence();
  /// Sees to it that time is looked at: at `at`, and now and then while runs are in flight.
  void arm_tick(std::optional<run_time> at);
  run_time now() const;

  pointer self_ = nullptr;
  coordinator_options options_;
  std::unique_ptr<recording::recorded_machine> machine_;
  std::vector<silence_watch> watches_;                 // by device
  std::vector<std::shared_ptr<const void>> needed_;    // by device: of those that leave
  std::unordered_map<uint64_t, pending_run_ptr> runs_; // by ticket: not answered
  std::unordered_map<uint64_t, plan_query_ptr> queries_;
  uint64_t last_query_ = 0;
  std::vector<command> commands_; // being carried out
  std::optional<run_time> next_tick_;
  bool closing_ = false;
  bool telling_ = false; // the machine: still set if it has thrown, and then it is in no state that anybody knows
};

/// The behaviours; spawn them with CAF, a planner on a thread of its own.
coordinator_ref::behavior_type coordinator(coordinator_state::pointer self, coordinator_options options);
planner_ref::behavior_type planner(planner_ref::pointer self);

} // namespace troupe::actors
