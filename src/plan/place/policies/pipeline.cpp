// Contiguous stages in the graph's order, one a device, for several runs in flight: the slowest stage, which bounds the throughput, as
// fast as can be (stages.hpp). A further stage has to lower that, so slow links and devices may be left out.
//
// A stage takes the seconds of its nodes on its device, of the callers' inputs that it reads first, of the outputs that it makes, and of
// what crosses its ends. The devices' order is the stages'. What counts otherwise:
// - A pinned node counts for its device, wherever it is. What only fallback devices and control flow run counts for no stage.
// - What a stage's device cannot run goes to the next regular one that can, and the stage waits for it.
// - A value that is read behind a cut crosses it, though it may pass the stage between: what passes is overestimated.
// - Memory is the stage's weights, each once, and the most that is live at one of its nodes, whoever made it. If no stages fit, they
//   are balanced as if they did: binding says what lacks, and the session spills (`fit_memory`).
#include "graph/bodies.hpp"
#include "plan/bind/memory.hpp"
#include "plan/place/policies.hpp"
#include "plan/place/stages.hpp"

#include <algorithm>
#include <functional>

namespace troupe {
namespace {

/// Values that cross a cut.
struct crossing {
  double count = 0, bytes = 0;
};

class stage_costing {
public:
  explicit stage_costing(placement_problem& problem)
      : problem_(problem), stands_aside_(problem.node_count()), crossings_(problem.node_count() + 1),
        live_(problem.node_count() + 1, 0) {
    for (node_id n = 0; n < static_cast<node_id>(stands_aside_.size()); ++n)
      stands_aside_[n] = problem.pinned(n) != no_device || has_body(problem.program().nodes[n]) ||
                         problem.find(n, 0) >= problem.regular_count();
    find_crossings();
    find_live();
  }

  stage_costs find() {
    stage_costs costs{.cuts = static_cast<uint32_t>(problem_.node_count() + 1)};
    std::vector<device_index> hosts; // a device of each
    for (size_t at = 0; at < problem_.regular_count(); ++at) {
      const device_index d = problem_.order()[at];
      const auto known =
          std::find_if(hosts.begin(), hosts.end(), [&](device_index h) { return info(h).host == info(d).host; });
      device_stages& stages = costs.devices.emplace_back();
      stages.host = static_cast<uint32_t>(known - hosts.begin());
      if (known == hosts.end())
        hosts.push_back(d);
      find_seconds(at, stages);
      find_first(d, stages);
    }
    costs.hosts = static_cast<uint32_t>(hosts.size());
    for (device_index from : hosts)
      for (device_index to : hosts)
        costs.network.push_back(network(info(from), info(to)));
    return costs;
  }

private:
  const device_info& info(device_index d) const { return problem_.devices()[d]; }
  const node& call(node_id n) const { return problem_.program().nodes[n]; }
  bool is_input(value_id v) const {
    const value& info = problem_.program().values[v];
    return problem_.edges().producer[v] < 0 && !info.constant && !info.known;
  }
  double bytes(value_id v) { return static_cast<double>(problem_.bytes(v)); }

  /// Each value crosses the cuts from behind its producer to before its last reader.
  void find_crossings() {
    std::vector<crossing> change(crossings_.size() + 1);
    for (value_id v = 0; v < static_cast<value_id>(problem_.program().values.size()); ++v) {
      const node_id maker = problem_.edges().producer[v];
      const auto& readers = problem_.edges().consumers[v];
      if (maker < 0 || readers.empty())
        continue;
      crossing& begin = change[maker + 1];
      crossing& end = change[readers.back() + 1];
      begin.count += 1;
      begin.bytes += bytes(v);
      end.count -= 1;
      end.bytes -= bytes(v);
    }
    crossing now;
    for (size_t cut = 0; cut < crossings_.size(); ++cut) {
      now.count += change[cut].count;
      now.bytes += change[cut].bytes;
      crossings_[cut] = now;
    }
  }

  /// Finds the bytes that are live at each node. Views hold their source's.
  void find_live() {
    const size_t count = problem_.program().values.size();
    std::vector<value_id> root(count);
    std::vector<node_id> last(count, -1); // reader, by root
    for (size_t v = 0; v < count; ++v)
      root[v] = static_cast<value_id>(v);
    for (node_id n = 0; n < static_cast<node_id>(problem_.node_count()); ++n) {
      if (is_view(call(n)))
        root[call(n).outputs[0]] = root[call(n).inputs[0]];
      for (value_id v : call(n).inputs)
        if (v != no_value)
          last[root[v]] = n;
      for (value_id v : call(n).outputs)
        if (v != no_value)
          last[root[v]] = std::max(last[root[v]], n);
    }
    for (value_id v = 0; v < static_cast<value_id>(count); ++v) {
      if (root[v] != v || last[v] < 0 || problem_.program().values[v].constant)
        continue;
      const node_id maker = problem_.edges().producer[v];
      const int64_t space = arena_space(problem_.bytes(v));
      live_[maker >= 0 ? maker : problem_.edges().consumers[v].front()] += space;
      live_[last[v] + 1] -= space;
    }
    for (size_t n = 1; n < live_.size(); ++n)
      live_[n] += live_[n - 1];
  }

  /// Returns the seconds in which the values that cross a cut move, of which one takes `of_one(bytes)`.
  template <class OfOne>
  static double seconds_of(const crossing& c, OfOne&& of_one) {
    return c.count > 0 ? c.count * of_one(c.bytes / c.count) : 0;
  }

  std::vector<double> network(const device_info& from, const device_info& to) const {
    if (from.host == to.host)
      return {};
    std::vector<double> by_cut;
    for (const crossing& c : crossings_)
      by_cut.push_back(seconds_of(c, [&](double one) { return network_seconds(one, &from, &to); }));
    return by_cut;
  }

  /// Returns the seconds of a node on a device: the caller's inputs that it is the first to read and outputs included.
  double seconds(node_id n, device_index d) {
    double sum = problem_.seconds(n, d);
    for (value_id v : call(n).inputs)
      if (v != no_value && is_input(v) && problem_.edges().consumers[v].front() == n)
        sum += network_seconds(bytes(v), nullptr, &info(d)) + link_seconds(bytes(v), info(d).profile.up);
    for (value_id v : call(n).outputs)
      if (v != no_value && problem_.edges().is_output[v])
        sum += network_seconds(bytes(v), &info(d), nullptr) + link_seconds(bytes(v), info(d).profile.down);
    return sum;
  }

  void find_seconds(size_t at, device_stages& stages) {
    const device_index d = problem_.order()[at];
    double pinned = 0, before = 0;
    for (node_id n = 0; n < static_cast<node_id>(problem_.node_count()); ++n)
      if (problem_.pinned(n) == d && !has_body(call(n)))
        pinned += seconds(n, d);
    for (size_t cut = 0; cut < crossings_.size(); ++cut) {
      const crossing& c = crossings_[cut];
      stages.begin.push_back(before - seconds_of(c, [&](double one) { return link_seconds(one, info(d).profile.up); }));
      stages.end.push_back(pinned + before +
                           seconds_of(c, [&](double one) { return link_seconds(one, info(d).profile.down); }));
      const auto n = static_cast<node_id>(cut);
      if (cut < problem_.node_count() && !stands_aside_[n])
        before += seconds(n, problem_.order()[problem_.find(n, at)]);
    }
  }

  /// Finds the longest stages that the device's memory has room for.
  void find_first(device_index d, device_stages& stages) {
    std::vector<uint32_t> uses(problem_.program().values.size(), 0);
    int64_t weights = 0;
    /// Counts a node's weights in (1) or out (-1).
    const auto count = [&](node_id n, int32_t step) {
      if (!problem_.allows(n, d))
        return;
      for (value_id v : call(n).inputs)
        if (v != no_value && problem_.program().values[v].constant) {
          weights += uses[v] == (step > 0 ? 0 : 1) ? step * arena_space(problem_.bytes(v)) : 0;
          uses[v] += static_cast<uint32_t>(step);
        }
    };
    for (node_id n = 0; n < static_cast<node_id>(problem_.node_count()); ++n)
      if (problem_.pinned(n) == d)
        count(n, 1);            // for good
    std::vector<uint32_t> most; // nodes whose live bytes no later one of the stage exceeds, those before `head` aside
    size_t head = 0;
    uint32_t first = 0;
    stages.first.push_back(0);
    for (uint32_t n = 0; n < problem_.node_count(); ++n) {
      const auto counts = [&](uint32_t m) { return problem_.pinned(static_cast<node_id>(m)) == no_device; };
      if (counts(n))
        count(static_cast<node_id>(n), 1);
      while (most.size() > head && live_[most.back()] <= live_[n])
        most.pop_back();
      most.push_back(n);
      while (first <= n && weights + live_[most[head]] > problem_.budget(d)) {
        if (counts(first))
          count(static_cast<node_id>(first), -1);
        head += most[head] == first;
        ++first;
      }
      stages.first.push_back(first);
    }
  }

  placement_problem& problem_;
  std::vector<bool> stands_aside_;  // by node: it is in no stage, whatever stages there are
  std::vector<crossing> crossings_; // by cut
  std::vector<int64_t> live_;       // by node
};

} // namespace

placed_nodes place_pipeline(placement_problem& problem) {
  if (problem.regular_count() < 2)
    return place_single(problem);
  stage_costs costs = stage_costing(problem).find();
  std::vector<stage> stages = balance_stages(costs);
  if (stages.empty()) {
    for (device_stages& d : costs.devices)
      std::fill(d.first.begin(), d.first.end(), 0);
    stages = balance_stages(costs);
  }
  placed_nodes placed(problem.node_count());
  for (const stage& s : stages)
    for (uint32_t n = s.begin; n < s.end; ++n)
      placed[n] = problem.order()[problem.find(static_cast<node_id>(n), s.device)];
  return placed;
}

} // namespace troupe
