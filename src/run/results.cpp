#include "run/results.hpp"

#include "plan/plan_cache.hpp"

#include <algorithm>

namespace troupe {

double run_stats::parallel_efficiency() const {
  double busy = 0;
  size_t used = 0;
  for (const auto& [device, ms] : busy_ms)
    if (ms > 0) {
      busy += ms;
      ++used;
    }
  return used > 0 && total_ms > 0 ? busy / (static_cast<double>(used) * total_ms) : 0;
}

void add(run_stats& all, const run_stats& part) {
  all.plan_cached = part.plan_cached && (all.plan_cached || all.chunks == 0);
  all.chunks += part.chunks;
  all.fetched_bytes += part.fetched_bytes;
  for (const std::string& name : part.lost_devices)
    if (std::find(all.lost_devices.begin(), all.lost_devices.end(), name) == all.lost_devices.end())
      all.lost_devices.push_back(name);
  for (const auto& busy : part.busy_ms) {
    const auto same =
        std::find_if(all.busy_ms.begin(), all.busy_ms.end(), [&](const auto& b) { return b.first == busy.first; });
    if (same == all.busy_ms.end())
      all.busy_ms.push_back(busy);
    else
      same->second += busy.second;
  }
}

stream_stats& stream_stats::operator+=(const stream_stats& other) {
  answered += other.answered;
  failed += other.failed;
  late += other.late;
  waiting += other.waiting;
  in_flight += other.in_flight;
  rows = other.rows;
  whole_because = other.whole_because;
  replicas.insert(replicas.end(), other.replicas.begin(), other.replicas.end());
  return *this;
}

session_stats& session_stats::operator+=(const session_stats& other) {
  runs += other.runs;
  plans += other.plans;
  bound_plans += other.bound_plans;
  layouts += other.layouts;
  rewrite_ms += other.rewrite_ms;
  plan_ms += other.plan_ms;
  return *this;
}

} // namespace troupe
