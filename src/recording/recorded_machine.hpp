// A session machine that is recorded, if that is wanted: what a session's shell holds. Its calls are those of
// `session_machine`. Not thread-safe.
#pragma once

#include "recording/recorder.hpp"

namespace troupe::recording {

class recorded_machine {
public:
  /// As `session_machine`. `notes`: null if nothing is recorded.
  recorded_machine(const std::vector<device_info>& devices, ledger_accounts accounts,
                   const std::shared_ptr<session_plans>& plans, completion_mode completion, bool follows_speeds,
                   std::unique_ptr<recorder> notes)
      : notes_(std::move(notes)), machine_(devices, notes_ ? notes_->watch(std::move(accounts)) : std::move(accounts),
                                           plans, completion, follows_speeds) {}

  void set_time(run_time now);
  void start_run(const run_request_ptr& request);
  void on(const chunk_begun& begun);
  void on(chunk_ended& ended);
  void on(size_t device, const plan_installed& answer);
  void on(tensor_fetched& answer);
  void on(const continue_control& next);
  void on(const planned& answer);
  void ask_plan(uint64_t query, const named_tensors& inputs);
  void cancel(uint64_t ticket);
  void lose_device(size_t device, const std::string& why);
  void leave_device(size_t device, const std::string& why);
  void add_device(const device_info& device, std::shared_ptr<ledger_account> account);
  void on_memory_changed();
  void tick();
  void close();
  /// Hands the commands to `each`, in their order, and gives the machine spare time, as long as it makes others then.
  /// To be called after each event but `set_time` and `chunk_begun`; `room` is used for the commands.
  template <class Each>
  void carry_out(std::vector<command>& room, Each&& each) {
    do {
      take_commands(room);
      for (command& c : room)
        each(c);
    } while (use_spare_time());
  }

  /// What a shell asks without telling anything.
  const session_machine& state() const { return machine_; }

private:
  /// Tells the machine of an event, of which `note(recorder)` makes a record before.
  template <class Note, class Event>
  auto tell(Note&& note, Event&& event);
  void take_commands(std::vector<command>& into);
  bool use_spare_time();

  const std::unique_ptr<recorder> notes_; // null: nothing is recorded
  session_machine machine_;
};

} // namespace troupe::recording
