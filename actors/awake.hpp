// The short way of a message between threads that are awake: waking one takes 20 to 90 µs on a virtual machine, a small run on a GPU 50.
//
// - `send_here`: the receiver, a scheduled actor, handles the message on the sender's thread if it is idle. For threads that run no actor (callers, waiters of
//   devices) or whose actor has nothing else to do. The receiver's handlers must not block; what it sends meanwhile to scheduled actors goes to the scheduler.
// - `look_until`: looks again and again for a few milliseconds, as the thread that waits for a GPU does, before a thread blocks. Only if there are cores to spare.
//   Meanwhile it helps threads that share their work (base/shared_work.hpp): the caller of a run helps to write its inputs.
#pragma once

#include "base/shared_work.hpp"
#include "plan/predict.hpp"

#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <caf/send.hpp>

#include <chrono>
#include <thread>

namespace troupe::actors {

/// A thread that one actor borrows. The actor may keep a pointer to it that it does not use until it is resumed by another.
class borrowed_thread final : public caf::execution_unit {
public:
  explicit borrowed_thread(caf::actor_system& system) : caf::execution_unit(&system) {}

  void exec_later(caf::resumable* job) override {
    if (first_)
      system().scheduler().enqueue(job);
    else
      first_ = job;
  }

  /// Runs the actor that the message has woken, if any, for a few messages.
  void run() {
    constexpr size_t most_messages = 4;
    if (!first_)
      return;
    switch (first_->resume(this, most_messages)) {
      case caf::resumable::resume_later: system().scheduler().enqueue(first_); break; // with its reference
      default: caf::intrusive_ptr_release(first_);
    }
  }

private:
  caf::resumable* first_ = nullptr;
};

/// See the top of this file.
template <class Receiver, class Message>
void send_here(const Receiver& to, Message&& message) {
  if (!to)
    return;
  borrowed_thread mine(to->home_system());
  to->eq_impl(caf::make_message_id(), nullptr, &mine, std::forward<Message>(message));
  mine.run();
}

/// Whether it pays to look for what a device does: the answer of a GPU, on a machine with cores to spare.
inline bool worth_looking(const device_info& device) {
  constexpr unsigned enough_cores = 8;
  return device.kind == device_kind::vulkan && !is_emulated(device) &&
         std::thread::hardware_concurrency() >= enough_cores;
}

/// Looks until `is_there` says so, for at most 5 ms: longer than most inference takes.
template <class Condition>
void look_until(Condition&& is_there) {
  constexpr auto look_time = std::chrono::milliseconds(5);
  const auto give_up = std::chrono::steady_clock::now() + look_time;
  while (!is_there() && std::chrono::steady_clock::now() < give_up) {
    help();
    __builtin_ia32_pause();
  }
}

} // namespace troupe::actors
