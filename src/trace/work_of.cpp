#include "trace/timeline.hpp"
#include "troupe/inspect.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr uint32_t no_lane = 0; // of a timeline: "run"

/// Returns what a bar is of a device; nullopt for chunks and for the run.
std::optional<traced_work::what> kind_of(bar_kind kind) {
  switch (kind) {
    case bar_kind::node: return traced_work::what::node;
    case bar_kind::upload: return traced_work::what::upload;
    case bar_kind::download: return traced_work::what::download;
    default: return std::nullopt;
  }
}

} // namespace

std::vector<traced_work> work_of(const run_trace& trace) {
  const timeline t = timeline_of(trace);
  std::vector<std::pair<uint32_t, traced_work>> all; // with the lane
  for (const timeline_bar& bar : t.bars) {
    const auto kind = kind_of(bar.kind);
    const uint32_t lane = t.tracks[bar.track].lane;
    if (!kind || lane == no_lane)
      continue;
    const bool is_move = *kind != traced_work::what::node;
    all.emplace_back(lane, traced_work{.kind = *kind,
                                       .name = is_move ? bar.name.substr(to_string(bar.kind).size() + 1) : bar.name,
                                       .device = t.lanes[lane].name,
                                       .bytes = std::max<int64_t>(bar.bytes, 0),
                                       .begin_s = static_cast<double>(bar.begin_ns) * 1e-9,
                                       .end_s = static_cast<double>(bar.end_ns) * 1e-9});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second.begin_s) < std::pair(b.first, b.second.begin_s);
  });
  std::vector<traced_work> sorted;
  for (auto& [lane, work] : all)
    sorted.push_back(std::move(work));
  return sorted;
}

} // namespace troupe
