// Data parallelism inside one kernel or copy.
#pragma once

#include <cstdint>
#include <functional>

namespace troupe {

/// Calls `body(begin, end)` on disjoint ranges that cover [0, count), on several threads if `count` exceeds `grain`.
/// `grain`: elements whose work is worth waking a thread. Threads take ranges as they come to them, so that one that
/// loses its core holds up no more than one range. Inside of `body` there is one thread: the calling one. The first
/// exception a body throws is rethrown on the calling thread after all ranges have ended; the rest may be left out.
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

/// Copies bytes, on several threads if they are many: one alone copies at a quarter of what a GPU's bus carries.
void parallel_copy(void* to, const void* from, int64_t bytes);
/// The same. Meanwhile `copied(n)` is called on this thread again and again, for growing n up to `bytes`, after the
/// first n bytes are copied; what it throws ends the copy.
void parallel_copy(void* to, const void* from, int64_t bytes, const std::function<void(int64_t n)>& copied);

/// Returns the number of threads that kernels of the calling thread may use: one inside of `parallel_for`; else what
/// `thread_limit` says; else OMP_NUM_THREADS or the number of cores that the process may use, whichever is less.
int thread_count();

/// As long as it lives, kernels of the calling thread use `most` threads or fewer; 0 changes nothing. Work of a few
/// microseconds is done sooner alone.
class thread_limit {
public:
  explicit thread_limit(int most);
  ~thread_limit();
  thread_limit(const thread_limit&) = delete;
  thread_limit& operator=(const thread_limit&) = delete;

private:
  const int before_;
  int of_libraries_ = 0; // OpenMP's own limit before; 0: nothing is changed
};

} // namespace troupe
