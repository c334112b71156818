// Heterogeneous earliest finish time: nodes in the order of their distance to the end of the model, each on the device that
// would finish it first, moves between devices and the answers they wait for included.
//
// A device that idles while it waits may be given a short node meanwhile (insertion), among the newest of its pauses. The
// result is a plan's first draft: `make_plan` compares it with `single` by prediction and keeps the better.
#include "plan/place/policies.hpp"

#include <algorithm>
#include <deque>
#include <numeric>

namespace troupe {
namespace {

/// When a device is busy.
class timeline {
public:
  /// Returns the earliest start of a piece of work that is ready at `ready`.
  double earliest(double ready, double duration) const {
    for (const pause& p : pauses_)
      if (std::max(p.begin, ready) + duration <= p.end)
        return std::max(p.begin, ready);
    return std::max(end_, ready);
  }

  void occupy(double start, double duration) {
    if (start >= end_) {
      if (start > end_)
        remember({end_, start});
      end_ = start + duration;
      return;
    }
    const auto holds = [&](const pause& p) { return p.begin <= start && start + duration <= p.end; };
    const auto p = std::find_if(pauses_.begin(), pauses_.end(), holds);
    const pause rest{start + duration, p->end};
    p->end = start;
    remember(rest);
  }

private:
  struct pause {
    double begin, end;
  };
  static constexpr size_t max_pauses = 16;

  void remember(pause p) {
    pauses_.push_back(p);
    if (pauses_.size() > max_pauses)
      pauses_.pop_front();
  }

  std::deque<pause> pauses_;
  double end_ = 0;
};

class scheduler {
public:
  explicit scheduler(placement_problem& problem)
      : problem_(problem), placed_(problem.node_count(), no_device), finish_(problem.node_count(), 0),
        arrival_(problem.program().values.size() * problem.devices().size(), -1.0),
        timelines_(problem.devices().size()) {}

  placed_nodes place() {
    const std::vector<double> rank = upward_ranks();
    std::vector<node_id> order(placed_.size());
    std::iota(order.begin(), order.end(), node_id{0});
    // Equal ranks keep the graph's order, which is topological.
    std::stable_sort(order.begin(), order.end(), [&](node_id a, node_id b) { return rank[a] > rank[b]; });
    for (node_id n : order)
      place(n);
    return std::move(placed_);
  }

private:
  const device_profile& profile(device_index d) const { return problem_.devices()[d].profile; }
  double& arrival(value_id v, device_index d) {
    return arrival_[static_cast<size_t>(v) * problem_.devices().size() + d];
  }

  /// Seconds from each node's start to the end of the model, with times averaged over the devices.
  std::vector<double> upward_ranks() {
    std::vector<double> rank(placed_.size(), 0);
    for (auto n = static_cast<node_id>(rank.size()); n-- > 0;) {
      double behind = 0;
      for (value_id v : problem_.program().nodes[n].outputs)
        if (v != no_value)
          for (node_id reader : problem_.edges().consumers[v])
            behind = std::max(behind, mean_move(v) + rank[reader]);
      rank[n] = mean_seconds(n) + behind;
    }
    return rank;
  }

  /// Returns how a node's time and those of others are averaged: over the regular devices that may run it.
  double mean_seconds(node_id n) {
    double sum = 0, count = 0;
    for (device_index d : candidates(n)) {
      sum += problem_.seconds(n, d);
      ++count;
    }
    return sum / count;
  }

  double mean_move(value_id v) {
    const size_t devices = problem_.regular_count();
    if (devices < 2)
      return 0;
    const auto bytes = static_cast<double>(problem_.bytes(v));
    double sum = 0;
    for (size_t i = 0; i < devices; ++i) {
      const device_profile& p = profile(problem_.order()[i]);
      sum += p.chunk_s + link_seconds(bytes, p.up) + link_seconds(bytes, p.down);
    }
    // A move is one device's down and another's up; one of `devices` choices is no move.
    return sum / static_cast<double>(devices) * (1 - 1 / static_cast<double>(devices));
  }

  /// Returns the devices that may run a node: regular ones, else fallback ones.
  const std::vector<device_index>& candidates(node_id n) {
    candidates_.clear();
    const auto& order = problem_.order();
    for (size_t i = 0; i < order.size() && (i < problem_.regular_count() || candidates_.empty()); ++i)
      if (problem_.allows(n, order[i]))
        candidates_.push_back(order[i]);
    if (candidates_.empty())
      problem_.find(n, 0); // throws, and says why
    return candidates_;
  }

  /// Returns when device `d` can have a value.
  double ready_at(value_id v, device_index d) {
    const value& info = problem_.program().values[v];
    const node_id made_by = problem_.edges().producer[v];
    if (info.constant || (made_by < 0 && info.known))
      return 0;
    if (made_by >= 0 && placed_[made_by] == d)
      return finish_[made_by];
    if (arrival(v, d) >= 0)
      return arrival(v, d);
    const auto bytes = static_cast<double>(problem_.bytes(v));
    if (made_by < 0)
      return bytes / profile(d).input_bytes_per_s + link_seconds(bytes, profile(d).up);
    if (placed_[made_by] == no_device)
      return 0; // joined by a data-dependent dim alone
    const device_profile& from = profile(placed_[made_by]);
    return finish_[made_by] + from.chunk_s + move_seconds(bytes, from, profile(d));
  }

  void place(node_id n) {
    const node& call = problem_.program().nodes[n];
    double best_finish = 0, best_start = 0;
    for (device_index d : candidates(n)) {
      double ready = 0;
      for (value_id v : call.inputs)
        if (v != no_value)
          ready = std::max(ready, ready_at(v, d));
      const double duration = problem_.seconds(n, d);
      const double start = timelines_[d].earliest(ready, duration);
      const double finish = start + duration + download_seconds(call, d);
      if (placed_[n] != no_device && finish >= best_finish)
        continue;
      placed_[n] = d;
      best_start = start;
      best_finish = finish;
    }
    const device_index d = placed_[n];
    finish_[n] = best_start + problem_.seconds(n, d);
    timelines_[d].occupy(best_start, problem_.seconds(n, d));
    for (value_id v : call.inputs)
      if (v != no_value)
        arrival(v, d) = ready_at(v, d);
  }

  /// Returns the seconds in which a node's model outputs reach the host.
  double download_seconds(const node& call, device_index d) {
    double sum = 0;
    for (value_id v : call.outputs)
      if (v != no_value && problem_.edges().is_output[v])
        sum += link_seconds(static_cast<double>(problem_.bytes(v)), profile(d).down);
    return sum;
  }

  placement_problem& problem_;
  placed_nodes placed_;
  std::vector<double> finish_;  // by node
  std::vector<double> arrival_; // by value and device; negative: not moved there
  std::vector<timeline> timelines_;
  std::vector<device_index> candidates_; // scratch
};

} // namespace

placed_nodes place_heft(placement_problem& problem) {
  return scheduler(problem).place();
}

} // namespace troupe
