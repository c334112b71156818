#include "strategy/steady_shares.hpp"

#include "strategy/replica_speed.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

constexpr double worse = 1.05;      // than the best: still good enough
constexpr double worse_once = 1.25; // … for one request: what replicas have in flight evens out by itself
constexpr size_t cheap_kinds = 4, most_kinds = 16;
constexpr size_t few_sizes = 4, most_sizes = 64; // of requests: those with steps of their own; those remembered

using shares = std::vector<int64_t>;
using sharing_figures = share_figures sharing_replica::*;

/// Returns when shares end.
double ends(const shares& s, std::span<const sharing_replica> replicas, sharing_figures when) {
  double last = 0;
  for (size_t i = 0; i < s.size(); ++i)
    if (const share_figures& f = replicas[i].*when; s[i] > 0)
      last = std::max(last, f.begins_after + static_cast<double>(s[i]) * f.row_seconds);
  return last;
}

/// Returns what the numbers of rows cost that are new to their replicas.
double cost_of_sizes(const shares& s, std::span<const sharing_replica> replicas) {
  double cost = 0;
  for (size_t i = 0; i < s.size(); ++i)
    if (const auto& known = replicas[i].sizes; s[i] > 0 && std::find(known.begin(), known.end(), s[i]) == known.end())
      cost += replicas[i].size_seconds.value_or(replica_speed::unknown_size_seconds);
  return cost;
}

shares best_shares(int64_t rows, std::span<const sharing_replica> replicas, sharing_figures when, bool many_sizes) {
  std::vector<share_figures> all, busy;
  for (const sharing_replica& r : replicas) {
    all.push_back(r.*when);
    busy.push_back(r.rests ? share_figures{.begins_after = -1} : r.*when);
  }
  const auto by = [&](std::span<const share_figures> each) {
    return stepped_shares(rows, shares_that_end_together(static_cast<double>(rows), each), many_sizes);
  };
  const shares found = by(busy);
  const double end = ends(found, replicas, when);
  const bool need_help = std::ranges::any_of(replicas, [&](const sharing_replica& r) {
    const share_figures& f = r.*when;
    return r.rests && f.begins_after >= 0 && f.begins_after + r.take_over_seconds < end;
  });
  return need_help ? by(all) : found;
}

/// Returns the best of `had` that is about as good as `best`, else that.
shares known_or(const shares& best, const std::vector<shares>& had, std::span<const sharing_replica> replicas,
                sharing_figures when) {
  double least = worse * ends(best, replicas, when);
  const shares* found = &best;
  for (const shares& s : had)
    if (const double end = ends(s, replicas, when); end < least) {
      least = end;
      found = &s;
    }
  return *found;
}

void note(std::vector<shares>& had, const shares& given) {
  if (std::find(had.begin(), had.end(), given) != had.end())
    return;
  if (had.size() == most_kinds)
    had.erase(had.begin());
  had.push_back(given);
}

} // namespace

steady_shares::kept& steady_shares::kept_for(int64_t rows) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const kept& k) { return k.rows == rows; });
  if (found != kept_.end())
    return *found;
  if (kept_.size() == most_sizes)
    kept_.erase(kept_.begin());
  kept_.push_back({.rows = rows, .last = {}, .had = {}});
  many_sizes_ = many_sizes_ || kept_.size() > few_sizes;
  return kept_.back();
}

std::vector<int64_t> steady_shares::next(int64_t rows, std::span<const sharing_replica> replicas) {
  shares at_once = best_shares(rows, replicas, &sharing_replica::now, many_sizes_);
  if (rows <= few_rows)
    return at_once;
  kept& k = kept_for(rows);
  const shares lasting = best_shares(rows, replicas, &sharing_replica::idle, many_sizes_);
  const auto lost = [&](const shares& by, const shares& not_by, sharing_figures when, double bearable = worse) {
    return ends(by, replicas, when) - bearable * ends(not_by, replicas, when);
  };
  const auto pays_once = [&](const shares& instead_of) {
    const double cost = cost_of_sizes(at_once, replicas);
    const double more = many_sizes_ ? cost : std::max(0.0, cost - cost_of_sizes(instead_of, replicas));
    return lost(instead_of, at_once, &sharing_replica::now, worse_once) > more;
  };
  if (k.last.empty()) {
    k.last = pays_once(lasting) ? at_once : lasting;
    note(k.had, k.last);
    return k.last;
  }
  const double dearer = std::exp2(static_cast<double>(std::max(k.had.size(), cheap_kinds) - cheap_kinds));
  const shares better = known_or(lasting, k.had, replicas, &sharing_replica::idle);
  k.lost_seconds = std::max(0.0, k.lost_seconds + lost(k.last, better, &sharing_replica::idle));
  if (better != k.last && k.lost_seconds > dearer * cost_of_sizes(better, replicas)) {
    k.lost_seconds = 0;
    k.last = better;
    note(k.had, better);
  }
  if (pays_once(k.last)) {
    note(k.had, at_once);
    return at_once;
  }
  const shares known = known_or(k.last, k.had, replicas, &sharing_replica::now);
  return lost(k.last, known, &sharing_replica::now, worse_once) > 0 ? known : k.last;
}

std::vector<int64_t> steady_shares::with(size_t replica, int64_t rows, std::vector<int64_t> given) const {
  const shares* least = nullptr;
  for (const kept& k : kept_)
    for (const shares& s : k.had)
      if (k.rows == rows && s[replica] > 0 && (!least || s[replica] < (*least)[replica]))
        least = &s;
  if (least)
    return *least;
  const int64_t step = share_step(rows, given.size());
  given[replica] += step;
  *std::max_element(given.begin(), given.end()) -= step;
  return given;
}

} // namespace troupe
