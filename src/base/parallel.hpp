// Data parallelism inside one kernel. Only a CPU device's thread calls this (one OpenMP team per calling thread).
#pragma once

#include <cstdint>
#include <functional>

namespace troupe {

/// Calls `body(begin, end)` on disjoint ranges that cover [0, count), on several threads if `count` exceeds `grain`.
/// The first exception a body throws is rethrown on the calling thread after all ranges have ended.
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

/// Returns the number of threads a kernel may use.
int thread_count();

} // namespace troupe
