#include "troupe/results.hpp"

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

namespace {

cache_stats& operator+=(cache_stats& a, const cache_stats& b) {
  a.hits += b.hits;
  a.misses += b.misses;
  a.evictions += b.evictions;
  return a;
}

} // namespace

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
