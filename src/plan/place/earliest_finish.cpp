#include "plan/place/earliest_finish.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr size_t max_pauses = 16;

} // namespace

earliest_finish::earliest_finish(placement_problem& problem)
    : problem_(problem), placed_(problem.node_count(), no_device), finish_(problem.node_count(), 0),
      arrival_(problem.program().values.size() * problem.devices().size(), -1.0), timelines_(problem.devices().size()) {
}

double earliest_finish::timeline::earliest(double ready, double duration) const {
  for (const pause& p : pauses_)
    if (std::max(p.begin, ready) + duration <= p.end)
      return std::max(p.begin, ready);
  return std::max(end_, ready);
}

void earliest_finish::timeline::occupy(double start, double duration) {
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

void earliest_finish::timeline::remember(pause p) {
  pauses_.push_back(p);
  if (pauses_.size() > max_pauses)
    pauses_.pop_front();
}

const std::vector<device_index>& earliest_finish::candidates(node_id n) {
  candidates_.clear();
  const auto& order = problem_.order();
  for (size_t i = 0; i < order.size() && (i < problem_.regular_count() || candidates_.empty()); ++i)
    if (problem_.allows(n, order[i]))
      candidates_.push_back(order[i]);
  if (candidates_.empty())
    problem_.find(n, 0); // throws, and says why
  return candidates_;
}

double earliest_finish::ready_at(value_id v, device_index d) {
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
    return network_seconds(bytes, nullptr, &device(d)) + bytes / device(d).profile.input_bytes_per_s +
           link_seconds(bytes, device(d).profile.up);
  if (placed_[made_by] == no_device)
    return 0; // joined by a data-dependent dim alone
  const device_info& from = device(placed_[made_by]);
  return finish_[made_by] + from.profile.chunk_s + move_seconds(bytes, from, device(d));
}

void earliest_finish::place(node_id n) {
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

double earliest_finish::download_seconds(const node& call, device_index d) {
  double sum = 0;
  for (value_id v : call.outputs)
    if (v != no_value && problem_.edges().is_output[v]) {
      const auto bytes = static_cast<double>(problem_.bytes(v));
      sum += link_seconds(bytes, device(d).profile.down) + network_seconds(bytes, &device(d), nullptr);
    }
  return sum;
}

} // namespace troupe
