// Data parallelism inside one kernel or copy. Only devices' threads call this (one OpenMP team per calling thread).
#pragma once

#include <cstdint>
#include <functional>

namespace troupe {

/// Calls `body(begin, end)` on disjoint ranges that cover [0, count), on several threads if `count` exceeds `grain`.
/// The first exception a body throws is rethrown on the calling thread after all ranges have ended.
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

/// Copies bytes, on several threads if they are many: one alone copies at a quarter of what a GPU's bus carries.
void parallel_copy(void* to, const void* from, int64_t bytes);
/// The same. Meanwhile `copied(n)` is called on this thread again and again, for growing n up to `bytes`, after the
/// first n bytes are copied; what it throws ends the copy.
void parallel_copy(void* to, const void* from, int64_t bytes, const std::function<void(int64_t n)>& copied);

/// Returns the number of threads a kernel may use.
int thread_count();

/// As long as it lives, kernels of the calling thread use no other threads, if that is `wanted`: work of a few
/// microseconds is done sooner alone, and threads that have helped go on spinning for a while, on cores that others
/// want.
class single_thread {
public:
  explicit single_thread(bool wanted);
  ~single_thread();
  single_thread(const single_thread&) = delete;
  single_thread& operator=(const single_thread&) = delete;

private:
  const int before_; // 0: nothing is changed
};

} // namespace troupe
