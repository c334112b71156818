#include "plan/cut/adjust_chunks.hpp"

#include "base/topological_order.hpp"
#include "cost/cost_model.hpp"
#include "plan/estimate/predict.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

/// A change must gain at least this part of the predicted time: predictions are not that exact. A submission less is
/// a gain for sure if it delays no chunk.
constexpr double least_gain = 0.01;
/// Chunks that are looked at, one by one, for joining; more of them ask for another policy, not for other boundaries.
constexpr size_t most_joined = 64;

/// Chunks as they might be: what each costs, and its nodes.
struct draft {
  std::vector<chunk_cost> costs;
  std::vector<std::vector<node_id>> nodes;

  size_t size() const { return costs.size(); }
};

class boundary_search {
public:
  boundary_search(const plan& p, std::span<const shape> dims)
      : p_(p), dims_(dims), wanted_here_(values_wanted_here(p)) {
    best_.costs = chunk_costs(p, dims);
    for (const chunk& c : p.chunks)
      best_.nodes.push_back(c.nodes);
    grown_s_ = best_s_ = play(best_.costs, p.devices).makespan_s;
  }

  std::optional<chunk_adjustment> run() {
    // From the back, so that chunks in front keep their numbers.
    for (auto id = static_cast<chunk_id>(p_.chunks.size()); id-- > 0;)
      if (p_.devices[p_.chunks[id].device].copies_beside_work && !p_.options.values_stay)
        cuts_ += keep_if_better(cut(best_, id));
    if (best_.size() <= most_joined)
      join_all();
    if (cuts_ + joins_ == 0)
      return std::nullopt;
    return result();
  }

private:
  /// Takes a draft over if it is predicted to be faster, by at least this part.
  bool keep_if_better(std::optional<draft> changed, double gain = least_gain) {
    if (!changed)
      return false;
    const double s = play(changed->costs, p_.devices).makespan_s;
    if (s >= best_s_ || s > best_s_ * (1 - gain))
      return false;
    best_s_ = s;
    best_ = std::move(*changed);
    return true;
  }

  // -- cutting

  using value_set = std::vector<bool>; // by value

  value_set set_of(const std::vector<value_id>& values) const {
    value_set set(p_.program->values.size(), false);
    for (value_id v : values)
      set[v] = true;
    return set;
  }

  /// Calls `f` with the bytes of each of those values that `set` holds, and takes them out of it.
  template <class F>
  void take(const std::vector<value_id>& values, value_set& set, F&& f) const {
    for (value_id v : values)
      if (v != no_value && set[v]) {
        set[v] = false;
        f(v, value_bytes(p_, dims_, v));
      }
  }

  /// Returns the last waves of parts: a part ends if it has made enough to read back, or if enough comes for the next
  /// wave, that it pays to copy it beside work.
  std::vector<uint32_t> cut_points(const chunk& c) const {
    value_set comes = set_of(c.uploads), leaves = set_of(c.downloads);
    std::vector<uint32_t> points;
    double made = 0;
    for (uint32_t w = 0; w < c.wave_count(); ++w) {
      double needed = 0;
      for (node_id n : c.wave(w))
        take(p_.program->nodes[n].inputs, comes, [&](value_id, double bytes) { needed += bytes; });
      if (w > 0 && std::max(made, needed) >= copies_beside_bytes) {
        points.push_back(w - 1);
        made = 0;
      }
      for (node_id n : c.wave(w))
        take(p_.program->nodes[n].outputs, leaves, [&](value_id, double bytes) { made += bytes; });
    }
    return points;
  }

  /// Returns what some waves of a chunk cost as a chunk; takes what they upload and download out of `comes` and
  /// `leaves`.
  chunk_cost cost_of_part(const chunk& c, std::span<const node_id> nodes, uint32_t waves, value_set& comes,
                          value_set& leaves) const {
    const device_profile& device = p_.devices[c.device].profile;
    chunk_cost cost{.device = c.device, .segment = c.segment, .work_s = (waves - 1) * device.barrier_s};
    for (node_id n : nodes) {
      cost.work_s += predict_node(p_, dims_, n);
      take(p_.program->nodes[n].inputs, comes, [&](value_id v, double) { add_upload(cost, p_, dims_, v); });
      take(p_.program->nodes[n].outputs, leaves,
           [&](value_id v, double) { add_download(cost, p_, dims_, v, wanted_here_[v]); });
    }
    return cost;
  }

  /// Adds the parts of chunk `id`, which is as it was grown, to `result`.
  void add_parts(chunk_id id, std::span<const uint32_t> ends, draft& result) const {
    const chunk& c = p_.chunks[id];
    value_set comes = set_of(c.uploads), leaves = set_of(c.downloads);
    uint32_t first = 0; // wave
    for (uint32_t last : ends) {
      const uint32_t begin = c.wave_begin[first], end = c.wave_begin[last + 1];
      const auto nodes = std::span(c.nodes).subspan(begin, end - begin);
      chunk_cost& cost = result.costs.emplace_back(cost_of_part(c, nodes, last + 1 - first, comes, leaves));
      cost.predecessors = first == 0 ? c.predecessors : std::vector{static_cast<chunk_id>(result.nodes.size() - 1)};
      result.nodes.emplace_back(nodes.begin(), nodes.end());
      first = last + 1;
    }
  }

  /// Returns `from` with chunk `id`, before which nothing was cut, in parts. What awaits the chunk awaits its last
  /// part.
  std::optional<draft> cut(const draft& from, chunk_id id) const {
    std::vector<uint32_t> ends = cut_points(p_.chunks[id]);
    if (ends.empty())
      return std::nullopt;
    ends.push_back(p_.chunks[id].wave_count() - 1);
    draft result;
    for (chunk_id old = 0; old < from.size(); ++old) {
      if (old == id) {
        add_parts(id, ends, result);
        continue;
      }
      result.costs.push_back(from.costs[old]);
      result.nodes.push_back(from.nodes[old]);
      for (chunk_id& before : result.costs.back().predecessors)
        if (before >= id)
          before += static_cast<chunk_id>(ends.size()) - 1;
    }
    return result;
  }

  // -- joining

  /// Joins neighbours as long as that gains, those with the least work first.
  void join_all() {
    for (bool gained = true; gained;) {
      gained = false;
      for (const auto& [a, b] : neighbours())
        if (keep_if_better(join(best_, a, b), delays_no_chunk(a, b) ? 0 : least_gain)) {
          ++joins_;
          gained = true;
          break; // the numbers have changed
        }
    }
  }

  /// Returns the pairs of chunks that follow each other on a device and in a segment, those with the least work first.
  std::vector<std::pair<chunk_id, chunk_id>> neighbours() const {
    std::vector<std::pair<chunk_id, chunk_id>> pairs;
    std::vector<chunk_id> last(p_.devices.size(), UINT32_MAX);
    for (chunk_id id = 0; id < best_.size(); ++id) {
      const chunk_id before = std::exchange(last[best_.costs[id].device], id);
      if (before != UINT32_MAX && best_.costs[before].segment == best_.costs[id].segment)
        pairs.emplace_back(before, id);
    }
    const auto work = [&](const auto& pair) {
      return best_.costs[pair.first].work_s + best_.costs[pair.second].work_s;
    };
    std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& x, const auto& y) { return work(x) < work(y); });
    return pairs;
  }

  /// Whether no chunk waits longer if `a` and `b` are one: each chunk that waits for `a` waits for `b` too, and `b`
  /// waits only for what `a` waits for.
  bool delays_no_chunk(chunk_id a, chunk_id b) const {
    const auto waits = [&](chunk_id who, chunk_id whom) {
      const std::vector<chunk_id>& before = best_.costs[who].predecessors;
      return std::find(before.begin(), before.end(), whom) != before.end();
    };
    for (chunk_id id = 0; id < best_.size(); ++id)
      if ((id != b && waits(id, a) && !waits(id, b)) || (id != a && waits(b, id) && !waits(a, id)))
        return false;
    return true;
  }

  /// Returns `from` with chunks `a` and `b` in one; nullopt if something between them waits for `a`.
  std::optional<draft> join(const draft& from, chunk_id a, chunk_id b) const {
    std::vector<std::vector<chunk_id>> before(from.size());
    std::vector<std::pair<chunk_id, chunk_id>> edges;
    for (chunk_id id = 0; id < from.size(); ++id)
      for (chunk_id p : from.costs[id].predecessors)
        if (const chunk_id x = p == b ? a : p, y = id == b ? a : id; x != y) {
          before[y].push_back(x);
          edges.emplace_back(x, y);
        }
    std::vector<chunk_id> order = topological_order(from.size(), edges);
    if (order.size() != from.size())
      return std::nullopt;
    std::erase(order, b); // nothing leads to it or from it any more
    std::vector<chunk_id> number(from.size());
    for (chunk_id i = 0; i < order.size(); ++i)
      number[order[i]] = i;
    draft result;
    for (chunk_id old : order) {
      result.costs.push_back(from.costs[old]);
      result.nodes.push_back(from.nodes[old]);
      if (old == a)
        add(from, b, result);
      std::vector<chunk_id>& own = result.costs.back().predecessors;
      own.clear();
      for (chunk_id p : before[old])
        own.push_back(number[p]);
      std::sort(own.begin(), own.end());
      own.erase(std::unique(own.begin(), own.end()), own.end());
    }
    return result;
  }

  /// Adds what chunk `b` of `from` does to the last chunk of `result`.
  void add(const draft& from, chunk_id b, draft& result) const {
    chunk_cost& sum = result.costs.back();
    const chunk_cost& other = from.costs[b];
    sum.host_s += other.host_s;
    sum.in_s += other.in_s;
    sum.work_s += other.work_s + p_.devices[sum.device].profile.barrier_s;
    sum.out_s += other.out_s;
    sum.net_in_s += other.net_in_s;
    sum.net_out_s += other.net_out_s;
    sum.in_bytes += other.in_bytes;
    sum.out_bytes += other.out_bytes;
    result.nodes.back().insert(result.nodes.back().end(), from.nodes[b].begin(), from.nodes[b].end());
  }

  chunk_adjustment result() const {
    chunk_adjustment r;
    for (uint32_t c = 0; c < best_.size(); ++c)
      for (node_id n : best_.nodes[c]) {
        r.order.push_back(n);
        r.chunk_of.push_back(c);
      }
    r.remark = fmt::format("chunk boundaries: {} instead of {} ({} cut for copies beside work, {} joined), predicted "
                           "{:.3g} ms instead of {:.3g}",
                           best_.size(), p_.chunks.size(), cuts_, joins_, best_s_ * 1e3, grown_s_ * 1e3);
    return r;
  }

  const plan& p_;
  std::span<const shape> dims_;
  const std::vector<bool> wanted_here_; // by value
  draft best_;
  double best_s_ = 0, grown_s_ = 0;
  int cuts_ = 0, joins_ = 0;
};

} // namespace

std::optional<chunk_adjustment> adjust_chunks(const plan& p, std::span<const shape> dims) {
  return boundary_search(p, dims).run();
}

} // namespace troupe
