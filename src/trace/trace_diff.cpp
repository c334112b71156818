#include "trace/trace_diff.hpp"

#include "trace/trace_summary.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace troupe {
namespace {

using diff_key = std::tuple<bar_kind, std::string, std::string>; // name, operator

/// Times by lane.
struct gathered {
  size_t count = 0;
  std::map<uint32_t, double> by_lane;
};

std::map<diff_key, gathered> gather(const timeline& t) {
  std::map<diff_key, gathered> all;
  for (const timeline_bar& b : t.bars)
    if (b.kind != bar_kind::run && b.kind != bar_kind::chunk) {
      gathered& g = all[{b.kind, b.name, b.op}];
      ++g.count;
      g.by_lane[t.tracks[b.track].lane] += static_cast<double>(b.duration_ns());
    }
  return all;
}

diffed_side side_of(const timeline& t, const gathered& g) {
  diffed_side side{.count = g.count};
  double most = -1;
  for (const auto& [lane, ns] : g.by_lane) {
    side.total_ns += ns;
    if (ns > most) {
      most = ns;
      side.lane = t.lanes[lane].name;
    }
  }
  return side;
}

std::vector<diffed_single> without(const timeline& t, const std::map<diff_key, gathered>& own,
                                   const std::map<diff_key, gathered>& other) {
  std::vector<diffed_single> found;
  for (const auto& [key, g] : own)
    if (!other.contains(key))
      found.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), side_of(t, g)});
  std::stable_sort(found.begin(), found.end(),
                   [](const diffed_single& a, const diffed_single& b) { return a.side.total_ns > b.side.total_ns; });
  return found;
}

void compare_lanes(const timeline& a, const timeline& b, trace_diff& diff) {
  std::map<std::string, size_t> index;
  for (const auto& [t, busy] : {std::pair(&a, &diffed_lane::busy_a_ns), std::pair(&b, &diffed_lane::busy_b_ns)}) {
    const trace_summary sums = summary_of(*t, 0);
    for (size_t i = 0; i < t->lanes.size(); ++i) {
      const auto [found, is_new] = index.try_emplace(t->lanes[i].name, diff.lanes.size());
      if (is_new)
        diff.lanes.push_back({t->lanes[i].name});
      diff.lanes[found->second].*busy += static_cast<double>(sums.lanes[i].busy_ns);
    }
  }
}

} // namespace

trace_diff diff_of(const timeline& a, const timeline& b) {
  trace_diff diff{.a_ns = static_cast<double>(a.end_ns), .b_ns = static_cast<double>(b.end_ns)};
  compare_lanes(a, b, diff);
  const auto in_a = gather(a), in_b = gather(b);
  for (const auto& [key, g] : in_a) {
    const auto other = in_b.find(key);
    if (other == in_b.end())
      continue;
    const diffed_pair pair{std::get<0>(key), std::get<1>(key), std::get<2>(key), side_of(a, g),
                           side_of(b, other->second)};
    if (pair.moved())
      diff.moved.push_back(pair);
    if (pair.delta_ns() == 0)
      ++diff.unchanged;
    else
      (pair.delta_ns() > 0 ? diff.slower : diff.faster).push_back(pair);
  }
  const auto by_change = [](const diffed_pair& x, const diffed_pair& y) {
    return std::abs(x.delta_ns()) > std::abs(y.delta_ns());
  };
  for (auto* list : {&diff.moved, &diff.slower, &diff.faster})
    std::stable_sort(list->begin(), list->end(), by_change);
  diff.only_a = without(a, in_a, in_b);
  diff.only_b = without(b, in_b, in_a);
  return diff;
}

} // namespace troupe
