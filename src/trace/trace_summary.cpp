#include "trace/trace_summary.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

bool is_move(bar_kind k) {
  return k == bar_kind::upload || k == bar_kind::download;
}

bool is_frame(bar_kind k) {
  return k == bar_kind::run || k == bar_kind::chunk;
}

int64_t covered(std::vector<std::pair<int64_t, int64_t>>& spans) {
  std::sort(spans.begin(), spans.end());
  int64_t sum = 0, until = INT64_MIN;
  for (const auto& [begin, end] : spans) {
    if (end > until)
      sum += end - std::max(begin, until);
    until = std::max(until, end);
  }
  return sum;
}

void add_busy(const timeline& t, trace_summary& s) {
  using spans = std::vector<std::pair<int64_t, int64_t>>;
  std::vector<spans> inner(t.lanes.size()), chunks(t.lanes.size());
  for (const timeline_bar& b : t.bars) {
    const uint32_t lane = t.tracks[b.track].lane;
    if (b.kind != bar_kind::run)
      (b.kind == bar_kind::chunk ? chunks : inner)[lane].emplace_back(b.begin_ns, b.end_ns);
    lane_summary& sum = s.lanes[lane];
    if (is_move(b.kind)) {
      sum.move_ns += static_cast<double>(b.duration_ns());
      ++sum.moves;
    } else if (!is_frame(b.kind)) {
      sum.work_ns += static_cast<double>(b.duration_ns());
      ++sum.nodes;
    }
  }
  for (size_t lane = 0; lane < t.lanes.size(); ++lane)
    s.lanes[lane].busy_ns = covered(inner[lane].empty() ? chunks[lane] : inner[lane]);
}

} // namespace

trace_summary summary_of(const timeline& t, size_t most) {
  trace_summary s{.lanes = std::vector<lane_summary>(t.lanes.size())};
  add_busy(t, s);
  for (const timeline_counter& c : t.counters)
    for (const counter_point& p : c.points) {
      lane_summary& lane = s.lanes[c.lane];
      const int64_t sum = std::accumulate(p.values.begin(), p.values.end(), int64_t{0});
      if (c.name == "memory")
        lane.peak_bytes = std::max(lane.peak_bytes, sum);
      if (c.name == "queue")
        lane.peak_queue = std::max(lane.peak_queue, sum);
    }
  for (uint32_t b = 0; b < t.bars.size(); ++b)
    if (!is_frame(t.bars[b].kind) && !is_move(t.bars[b].kind))
      s.longest.push_back(b);
  const auto middle = s.longest.begin() + static_cast<std::ptrdiff_t>(std::min(most, s.longest.size()));
  std::partial_sort(s.longest.begin(), middle, s.longest.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(-t.bars[a].duration_ns(), a) < std::pair(-t.bars[b].duration_ns(), b);
  });
  s.longest.erase(middle, s.longest.end());
  s.critical = critical_path(t);
  std::vector<std::pair<int64_t, int64_t>> critical; // moves may come while nodes before them go on
  for (uint32_t b : s.critical)
    if (!is_frame(t.bars[b].kind))
      critical.emplace_back(t.bars[b].begin_ns, t.bars[b].end_ns);
  s.critical_ns = covered(critical);
  return s;
}

} // namespace troupe
