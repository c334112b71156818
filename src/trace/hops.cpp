#include "trace/hops.hpp"

#include "base/quantile.hpp"

#include <algorithm>
#include <limits>

namespace troupe {

std::optional<run_hops> hops_of(const run_trace& trace) {
  constexpr int64_t late = std::numeric_limits<int64_t>::max();
  int64_t sent = late, begins = late, ends = trace.begin_ns, answered = trace.begin_ns;
  for (const chunk_trace& c : trace.chunks) {
    sent = std::min(sent, c.sent_ns);
    answered = std::max(answered, c.ended_ns);
    for (const device_timing& t : c.timings) {
      begins = std::min(begins, t.begin_ns);
      ends = std::max(ends, t.end_ns);
    }
  }
  if (begins == late)
    return std::nullopt;
  const auto ms = [](int64_t from, int64_t to) { return static_cast<double>(to - from) * 1e-6; };
  return run_hops{ms(trace.begin_ns, sent), ms(sent, begins), ms(begins, ends), ms(ends, answered),
                  ms(answered, trace.end_ns)};
}

run_hops median_hops(std::span<const run_hops> runs) {
  const auto median_of = [&](double run_hops::*hop) {
    std::vector<double> all;
    for (const run_hops& r : runs)
      all.push_back(r.*hop);
    return median(all);
  };
  return {median_of(&run_hops::to_device), median_of(&run_hops::to_work), median_of(&run_hops::work),
          median_of(&run_hops::to_session), median_of(&run_hops::to_caller)};
}

} // namespace troupe
