// A schedule as SimGrid plays it: the makespan of another simulator, for the same platform and the same order of work.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::test {

/// A value that a chunk reads and that another host has.
struct oracle_fetch {
  std::string from; // host
  double bytes = 0;
};

/// What one device does without a pause.
struct oracle_chunk {
  size_t device = 0;
  double operations = 0;
  std::vector<size_t> after;         // chunks of other devices, which must have ended
  std::vector<oracle_fetch> fetches; // one after the other, while the device may still work for the chunk before
};

/// How SimGrid shares a link among transfers.
enum class oracle_sharing {
  equal,      // alike: latencies pass before a transfer begins
  by_latency, // by the inverse of their routes' latencies, as SimGrid's model CM02 does of itself, since TCP does
};

/// Returns the seconds until all chunks have ended. Devices take their chunks in the order of the list. `hosts`: by
/// device. Another process computes it, since SimGrid plays one simulation a process. Throws `std::runtime_error` if
/// that fails.
double simgrid_makespan(const std::string& platform_file, const std::vector<std::string>& hosts,
                        const std::vector<oracle_chunk>& chunks, oracle_sharing how);

} // namespace troupe::test
