// Work of some microseconds that one thread shares with those which are awake at the moment, because they look for
// something else again and again. Waking a thread takes 20 to 90 µs on a virtual machine; one core writes 588 KiB to a
// GPU's memory in 50.
//
// Work of more wakes threads that have nothing else to do, and stay awake for the next piece of it.
//
// Thread-safety: any thread may share and help.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace troupe {

/// Calls `body(begin, end)` on disjoint ranges of at most `grain` elements that cover [0, count), in ascending order,
/// on this thread and those that `help`. All have ended when it returns. `body` must not throw. Eight threads share at
/// once; another does its work alone. `woken`: how many threads that do nothing but help are woken, of all sharing
/// threads together no more than half of the cores; where there are many cores, they look for more work for five
/// milliseconds. `between` is called on this thread after each of its ranges, while others go on; if it throws, the
/// rest is not done.
void share_work(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body,
                int woken = 0, const std::function<void()>& between = {});

/// Calls `body(begin, end)` likewise on this thread and up to `helpers` threads that do nothing but help. They are
/// woken if they are asleep, and stay awake for another 0.1 ms: the next loop of a model follows within microseconds.
/// Ranges are taken, not given: a thread that loses its core holds up the range that it is at, and no other. The first
/// ranges are longer than `grain`. Other threads that are awake do not take part. `body` must not throw.
void share_loop(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body, int helpers);

/// Lets go of something whose end takes a while, many small pieces of memory: on a thread that is awake, if there is
/// one; else on this one.
void let_go(std::shared_ptr<const void> last) noexcept;

/// Takes ranges of what other threads share until none is left, and ends what they have let go of; returns at once if
/// there is nothing.
void help() noexcept;

/// Returns whether there are cores to spare: then a thread that waits for something short looks for it instead of
/// sleeping.
bool has_spare_cores() noexcept;

/// As long as one exists, its thread helps again and again. It helps once more at the end.
class awake_thread {
public:
  awake_thread() noexcept;
  ~awake_thread();
  awake_thread(const awake_thread&) = delete;
  awake_thread& operator=(const awake_thread&) = delete;
};

} // namespace troupe
