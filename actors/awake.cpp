#include "actors/awake.hpp"

#include "base/error.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <array>
#include <utility>

namespace troupe::actors {
namespace {

// To whom a thread is lent, in one word, so that its end and the actor's waking are in one order for all threads:
// no actor, an actor, or an actor with the bit `woken`, which the thread is to run: the word holds a reference then.
constexpr uintptr_t no_actor = 0, woken = 1;

struct alignas(64) place { // in a cache line of its own: its thread looks again and again
  std::atomic<uintptr_t> to{no_actor};
};
std::array<place, 16> places; // more threads find none, and nothing is run on them

uintptr_t word_of(const caf::resumable* actor) {
  return reinterpret_cast<uintptr_t>(actor);
}

/// Leaves an actor to the thread that is lent to it. Returns whether there is one; of several, each may be busy with
/// its own answer.
bool leave_to_lent_thread(const caf::resumable* actor) {
  place* only = nullptr;
  for (place& p : places)
    if ((p.to.load(std::memory_order_relaxed) & ~woken) == word_of(actor) && std::exchange(only, &p))
      return false;
  uintptr_t expected = word_of(actor);
  return only && only->to.compare_exchange_strong(expected, expected | woken);
}

} // namespace

void borrowed_thread::exec_later(caf::resumable* job) {
  if (first_)
    system().scheduler().enqueue(job);
  else
    first_ = job;
}

void borrowed_thread::run(run_on where) {
  constexpr size_t most_messages = 4;
  if (!first_ || (where != run_on::sender && leave_to_lent_thread(first_)))
    return;
  if (where == run_on::lent_or_scheduler || first_->resume(this, most_messages) == caf::resumable::resume_later)
    system().scheduler().enqueue(first_); // with its reference
  else
    caf::intrusive_ptr_release(first_);
}

lent_thread::lent_thread(caf::strong_actor_ptr to)
    : to_(std::move(to)), actor_(dynamic_cast<caf::resumable*>(to_->get())) {
  expects(actor_ != nullptr, "a thread is lent to an actor that none can run");
  for (place& p : places)
    if (uintptr_t free = no_actor; p.to.compare_exchange_strong(free, word_of(actor_))) {
      place_ = &p.to;
      return;
    }
}

lent_thread::~lent_thread() {
  if (place_ && place_->exchange(no_actor) != word_of(actor_))
    to_->home_system->scheduler().enqueue(actor_);
}

/// Only this thread takes `woken` away, and who is woken is not woken again before it has run: the word stays as it was
/// read.
void lent_thread::run_if_woken() {
  if (!place_ || place_->load(std::memory_order_relaxed) == word_of(actor_))
    return;
  place_->exchange(word_of(actor_)); // orders what the other thread did before
  borrowed_thread mine(*to_->home_system);
  mine.exec_later(actor_);
  mine.run(run_on::sender);
}

} // namespace troupe::actors
