// The short way of a message between threads that are awake: waking a thread takes 20 to 90 µs on a virtual machine,
// and a small run on a GPU takes 50.
//
// - `send_here`: the receiver, a scheduled actor, handles the message on the sender's thread if it is idle. For threads
//   that run no actor (callers, waiters of devices) or whose actor has nothing else to do. The receiver's handlers must
//   not block; its messages to scheduled actors go to the scheduler meanwhile.
// - `lent_thread`: a caller that looks for its answer runs the actor that it waits for. What the actor uses is in that
//   thread's cache: a coordinator that came and went with the threads of callers and devices would fetch it twice a
//   run, which takes longer than what it does with it.
// - `look_until`: looks again and again for a few milliseconds, as the thread that waits for a GPU does, before a
//   thread blocks. It does so only if there are cores to spare. Meanwhile the thread helps others that share their work
//   (base/shared_work.hpp): the caller of a run helps to write its inputs.
#pragma once

#include "base/cpu_relax.hpp"
#include "base/shared_work.hpp"
#include "plan/estimate/lanes.hpp"

#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/resumable.hpp>
#include <caf/send.hpp>

#include <atomic>
#include <chrono>

namespace troupe::actors {

/// Which thread handles a message.
enum class run_on : uint8_t {
  sender,            // the sender's
  lent,              // the one that is lent to the receiver (`lent_thread`), if there is one; else the sender's
  lent_or_scheduler, // the same, but else one of the scheduler's
};

/// A thread that one actor borrows. The actor may keep a pointer to it that it does not use until it is resumed by
/// another.
class borrowed_thread final : public caf::execution_unit {
public:
  explicit borrowed_thread(caf::actor_system& system) : caf::execution_unit(&system) {}

  void exec_later(caf::resumable* job) override;
  /// Runs the actor that the message has woken, if any, for a few messages.
  void run(run_on where);

private:
  caf::resumable* first_ = nullptr;
};

/// See the top of this file. `from`: whom the receiver sees as the sender.
template <class Receiver, class Message>
void send_here(const Receiver& to, Message&& message, run_on where = run_on::sender,
               caf::strong_actor_ptr from = nullptr) {
  if (!to)
    return;
  borrowed_thread mine(to->home_system());
  to->eq_impl(caf::make_message_id(), std::move(from), &mine, std::forward<Message>(message));
  mine.run(where);
}

/// Whether an actor has a thread of its own.
template <class Self>
bool has_own_thread(const Self* self) {
  return self->getf(caf::abstract_actor::is_detached_flag);
}

/// Sends as `self`: if its thread is its own, the message is handled on the one that is lent to the receiver, if there
/// is one.
template <class Self, class Receiver, class Message>
void answer(Self* self, const Receiver& to, Message&& message) {
  if (has_own_thread(self))
    send_here(to, std::forward<Message>(message), run_on::lent_or_scheduler, self->ctrl());
  else
    self->send(to, std::forward<Message>(message));
}

/// Lends the thread that makes it to an actor, a scheduled one: see the top of this file.
class lent_thread {
public:
  explicit lent_thread(caf::strong_actor_ptr to);
  /// Leaves the actor to the scheduler if it was woken here since: the caller has its answer, or has given up.
  ~lent_thread();
  lent_thread(const lent_thread&) = delete;
  lent_thread& operator=(const lent_thread&) = delete;

  /// Runs the actor for a few messages if it was woken here.
  void run_if_woken();

private:
  const caf::strong_actor_ptr to_;
  caf::resumable* const actor_;
  std::atomic<uintptr_t>* place_ = nullptr; // where others find the thread; null: nowhere
};

/// Whether it pays to look for what a device does: the answer of a GPU, on a machine with cores to spare.
inline bool worth_looking(const device_info& device) {
  return device.kind == device_kind::vulkan && !is_emulated(device) && has_spare_cores();
}

/// How long threads look: longer than most inference takes.
constexpr auto look_time = std::chrono::milliseconds(5);

/// Looks until `is_there` says so, at most until `give_up`.
template <class Condition>
void look_until(Condition&& is_there,
                std::chrono::steady_clock::time_point give_up = std::chrono::steady_clock::now() + look_time) {
  const auto goes_on = [&] { return !is_there() && std::chrono::steady_clock::now() < give_up; };
  if (!goes_on())
    return;
  const awake_thread helping;
  do {
    help();
    cpu_relax();
  } while (goes_on());
}

} // namespace troupe::actors
