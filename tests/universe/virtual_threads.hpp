// A process whose threads run one at a time, in an order that a seed decides, and in virtual time.
//
// After `begin_virtual_threads`, the calling thread and all threads that it and others make are virtual: what they do
// with mutexes, condition variables, futures, joins, sleeps and clocks goes to a scheduler in place of the C library
// (virtual_call.hpp). The scheduler lets one thread run until it waits, or until the seed
// wants another one; when all wait, the time moves to the earliest deadline. So the same seed gives the same run, of
// the program as it is: nothing in it knows of this. A process cannot go back; a test forks one for each seed.
//
// Each virtual thread is a thread of the system, so thread-local variables and exceptions are as ever. What waits
// without a call of the C library (a loop over an atomic variable) must also read the clock, or it waits for ever.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace troupe::universe {

/// What a seed does to the order of threads.
struct thread_rules {
  uint64_t seed = 0;
  double switch_chance = 0.1;   // that another thread goes on at a call that would not have to wait
  double stall_chance = 0;      // that a thread does nothing for a while at such a call, as on a busy machine
  int64_t longest_stall_ns = 0; // how long at most
  int64_t end_ns = 0;           // of virtual time: a process that still runs then is stuck
};

/// Why the process cannot go on.
enum class stuck : uint8_t { all_wait, too_long };

/// Makes the calling thread, which must be the only one, the first virtual thread. `when_stuck` is called if no thread
/// can go on, or at the end of time; it must not return.
void begin_virtual_threads(const thread_rules& rules, std::function<void(stuck)> when_stuck);

/// Returns the virtual time since `begin_virtual_threads`.
int64_t virtual_ns();

/// Returns a number that two runs have in common only if their threads went on in the same order at the same times.
uint64_t order_digest();

/// Returns how often another thread went on.
uint64_t thread_switches();

/// Prints what each thread waits for, and its calls.
void print_threads();

} // namespace troupe::universe
