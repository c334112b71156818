#include "trace/timeline.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace troupe {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  fail(errc::invalid_argument, "the timeline is wrong: {}", what);
}

/// Finds what each bar waited for last.
class path_walker {
public:
  explicit path_walker(const timeline& t) : t_(t) {
    std::vector<uint32_t> units;
    for (uint32_t b = 0; b < t.bars.size(); ++b)
      if (t.bars[b].kind == bar_kind::chunk)
        units.push_back(b);
    for (const timeline_edge& e : t.edges) {
      before_.emplace(e.to, e.from);
      units.push_back(e.from); // control flow has no bar of a chunk
      units.push_back(e.to);
    }
    for (uint32_t b = 0; units.empty() && b < t.bars.size(); ++b)
      if (t.bars[b].kind != bar_kind::run)
        units.push_back(b);
    std::sort(units.begin(), units.end(), [&](uint32_t a, uint32_t b) { return ends_before(a, b); });
    units.erase(std::unique(units.begin(), units.end()), units.end());
    for (uint32_t b : units)
      tracks_[t.bars[b].track].push_back(b);
    last_ = units.empty() ? nothing : units.back();
  }

  std::vector<uint32_t> walk() const {
    std::vector<uint32_t> path;
    std::set<uint32_t> seen;
    for (uint32_t at = last_; at != nothing && seen.insert(at).second; at = before(at))
      path.push_back(at);
    return path;
  }

private:
  static constexpr uint32_t nothing = UINT32_MAX;

  bool ends_before(uint32_t a, uint32_t b) const {
    return std::pair(t_.bars[a].end_ns, a) < std::pair(t_.bars[b].end_ns, b);
  }

  uint32_t before(uint32_t at) const {
    uint32_t found = nothing;
    const auto offer = [&](uint32_t b) {
      if (b != at && (found == nothing || ends_before(found, b)))
        found = b;
    };
    const auto [first, end] = before_.equal_range(at);
    for (auto i = first; i != end; ++i)
      offer(i->second);
    // The last on its track that had ended when this one began.
    const std::vector<uint32_t>& track = tracks_.at(t_.bars[at].track);
    const auto after = std::upper_bound(track.begin(), track.end(), t_.bars[at].begin_ns,
                                        [&](int64_t ns, uint32_t b) { return ns < t_.bars[b].end_ns; });
    for (auto i = after; i != track.begin();)
      if (*--i != at) {
        offer(*i);
        break;
      }
    return found;
  }

  const timeline& t_;
  std::multimap<uint32_t, uint32_t> before_;
  std::map<uint32_t, std::vector<uint32_t>> tracks_; // by track, in the order of their ends
  uint32_t last_ = nothing;
};

} // namespace

std::string_view to_string(bar_kind kind) {
  static constexpr std::array<std::string_view, 6> names{"run", "chunk", "node", "upload", "download", "other"};
  return names.at(static_cast<size_t>(kind));
}

void check(const timeline& t) {
  for (size_t i = 0; i < t.tracks.size(); ++i)
    if (t.tracks[i].lane >= t.lanes.size() || (i > 0 && t.tracks[i].lane < t.tracks[i - 1].lane))
      refuse(fmt::format("track {} is on lane {}", i, t.tracks[i].lane));
  for (size_t i = 0; i < t.bars.size(); ++i)
    if (t.bars[i].track >= t.tracks.size() || t.bars[i].end_ns < t.bars[i].begin_ns)
      refuse(
          fmt::format("bar {}: track {}, from {} to {} ns", i, t.bars[i].track, t.bars[i].begin_ns, t.bars[i].end_ns));
  for (const timeline_edge& e : t.edges)
    if (std::max(e.from, e.to) >= t.bars.size())
      refuse(fmt::format("an edge from bar {} to {}, of {}", e.from, e.to, t.bars.size()));
  for (const timeline_counter& c : t.counters) {
    if (c.lane >= t.lanes.size())
      refuse(fmt::format("counter '{}' is of lane {}", c.name, c.lane));
    for (size_t i = 0; i < c.points.size(); ++i)
      if (c.points[i].values.size() != c.series.size() || (i > 0 && c.points[i].at_ns < c.points[i - 1].at_ns))
        refuse(fmt::format("point {} of counter '{}'", i, c.name));
  }
}

std::vector<uint32_t> critical_path(const timeline& t) {
  std::vector<uint32_t> path = path_walker(t).walk();
  // A chunk's nodes and moves lie in time between its sending and its answer, on tracks of its lane.
  std::map<std::pair<uint32_t, int64_t>, std::vector<std::pair<int64_t, int64_t>>> spans;
  for (uint32_t b : path)
    if (const timeline_bar& bar = t.bars[b]; bar.kind == bar_kind::chunk)
      spans[{t.tracks[bar.track].lane, bar.chunk}].emplace_back(
          bar.sent_ns < 0 ? bar.begin_ns : std::min(bar.sent_ns, bar.begin_ns),
          bar.answered_ns < 0 ? bar.end_ns : std::max(bar.answered_ns, bar.end_ns));
  for (auto& [chunk, ranges] : spans)
    std::sort(ranges.begin(), ranges.end());
  for (uint32_t b = 0; b < t.bars.size(); ++b) {
    const timeline_bar& bar = t.bars[b];
    const bool part = bar.kind == bar_kind::node || bar.kind == bar_kind::upload || bar.kind == bar_kind::download;
    const auto found = part && bar.chunk >= 0 ? spans.find({t.tracks[bar.track].lane, bar.chunk}) : spans.end();
    if (found == spans.end())
      continue;
    const auto after = std::upper_bound(found->second.begin(), found->second.end(), std::pair(bar.begin_ns, INT64_MAX));
    if (after != found->second.begin() && bar.end_ns <= std::prev(after)->second)
      path.push_back(b);
  }
  std::sort(path.begin(), path.end());
  path.erase(std::unique(path.begin(), path.end()), path.end());
  return path;
}

} // namespace troupe
