#include "base/usable_cores.hpp"

#include "base/round_up.hpp"

#include <algorithm>
#include <fstream>
#include <sched.h>
#include <string>
#include <thread>

namespace troupe {
namespace {

int cores_of_affinity() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0)
    return CPU_COUNT(&cores);
  return static_cast<int>(std::thread::hardware_concurrency()); // of more than 1,024
}

/// Returns the numbers of a control group's file, 0 where it has none ("max").
std::pair<int64_t, int64_t> two_numbers(const std::string& file) {
  std::ifstream in(file);
  int64_t first = 0, second = 0;
  if (!(in >> first))
    return {};
  in >> second;
  return {first, second};
}

/// Returns the cores that a quota of time in each period is, rounded up; 0 for no limit.
int64_t cores_of_quota(std::pair<int64_t, int64_t> quota_and_period) {
  const auto [quota, period] = quota_and_period;
  return quota > 0 && period > 0 ? ceil_div(quota, period) : 0;
}

int64_t cores_of_control_group() {
  const std::string root = "/sys/fs/cgroup/"; // a container sees its own group there
  if (const int64_t cores = cores_of_quota(two_numbers(root + "cpu.max")); cores > 0)
    return cores;
  const std::string older = root + "cpu/cpu.cfs_";
  return cores_of_quota({two_numbers(older + "quota_us").first, two_numbers(older + "period_us").first});
}

} // namespace

int usable_cores() {
  const int64_t limit = cores_of_control_group();
  const int cores = std::max(cores_of_affinity(), 1);
  return limit > 0 ? static_cast<int>(std::min<int64_t>(limit, cores)) : cores;
}

} // namespace troupe
