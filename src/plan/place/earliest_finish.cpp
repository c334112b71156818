#include "plan/place/earliest_finish.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// The newest pauses that are filled. By this limit placing stays linear in nodes. With it the papers' examples come
/// out as published, and means over random graphs are the same as without it (bench/README.md).
constexpr size_t max_pauses = 16;

} // namespace

double device_timeline::earliest(double ready, double duration) const {
  for (const pause& p : pauses_)
    if (std::max(p.begin, ready) + duration <= p.end)
      return std::max(p.begin, ready);
  return std::max(end_, ready);
}

void device_timeline::occupy(double start, double duration) {
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

void device_timeline::remember(pause p) {
  pauses_.push_back(p);
  if (pauses_.size() > max_pauses)
    pauses_.pop_front();
}

earliest_finish::earliest_finish(const scheduling_problem& problem)
    : problem_(problem), placed_(problem.task_count(), policy_none), start_(problem.task_count(), 0),
      finish_(problem.task_count(), 0), arrival_(problem.value_count()), reads_left_(problem.value_count(), 0),
      timelines_(problem.device_count()) {
  for (task_id n = 0; n < problem.task_count(); ++n)
    for (uint32_t v : problem.inputs(n))
      ++reads_left_[v];
}

double earliest_finish::arrival(uint32_t v, uint32_t d) const {
  if (problem_.is_everywhere(v))
    return 0;
  const task_id made_by = problem_.producer(v);
  if (made_by != policy_none && placed_[made_by] == d)
    return finish_[made_by];
  if (!arrival_[v].empty() && arrival_[v][d] >= 0)
    return arrival_[v][d];
  if (made_by == policy_none)
    return problem_.move_seconds(v, policy_caller, d);
  const uint32_t from = placed_[made_by];
  if (from == policy_none)
    return 0; // joined by a data-dependent dim alone
  return finish_[made_by] + problem_.device(from).handover_s + problem_.move_seconds(v, from, d);
}

double earliest_finish::ready_at(task_id n, uint32_t d) const {
  double ready = 0;
  for (uint32_t v : problem_.inputs(n))
    ready = std::max(ready, arrival(v, d));
  return ready;
}

double earliest_finish::lacking_seconds(task_id n, uint32_t d) const {
  double sum = 0;
  const auto inputs = problem_.inputs(n);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t v = inputs[i];
    const task_id made_by = problem_.producer(v);
    const uint32_t from = made_by == policy_none ? policy_caller : placed_[made_by];
    const bool is_there = problem_.is_everywhere(v) || from == d || from == policy_none ||
                          (!arrival_[v].empty() && arrival_[v][d] >= 0) || (i > 0 && inputs[i - 1] == v);
    sum += is_there ? 0 : problem_.move_seconds(v, from, d);
  }
  return sum;
}

earliest_finish::slot earliest_finish::slot_on(task_id n, uint32_t d) const {
  const double duration = problem_.seconds(n, d);
  const double start = timelines_[d].earliest(ready_at(n, d), duration);
  return {start, start + duration + answer_seconds(n, d)};
}

void earliest_finish::append(task_id n, uint32_t d, double start) {
  const double begin = std::max(start, end_of(d));
  put(n, d, {begin, begin + problem_.seconds(n, d) + answer_seconds(n, d)});
}

void earliest_finish::put(task_id n, uint32_t d, const slot& at) {
  const double duration = problem_.seconds(n, d);
  placed_[n] = d;
  start_[n] = at.start;
  finish_[n] = at.start + duration;
  makespan_ = std::max(makespan_, at.finish);
  timelines_[d].occupy(at.start, duration);
  count_reads(n, d);
}

void earliest_finish::count_reads(task_id n, uint32_t d) {
  for (uint32_t v : problem_.inputs(n)) {
    if (--reads_left_[v] == 0) {
      arrival_[v] = {};
      continue;
    }
    const double at = arrival(v, d);
    if (arrival_[v].empty())
      arrival_[v].assign(problem_.device_count(), -1.0);
    arrival_[v][d] = at;
  }
}

earliest_finish::placing earliest_finish::before(task_id n, uint32_t d) const {
  placing is{n, d, timelines_[d], makespan_, {}};
  for (uint32_t v : problem_.inputs(n))
    is.arrivals.push_back(arrival_[v]);
  return is;
}

void earliest_finish::take_back(placing&& was) {
  const auto inputs = problem_.inputs(was.task);
  for (size_t i = 0; i < inputs.size(); ++i) {
    ++reads_left_[inputs[i]];
    arrival_[inputs[i]] = std::move(was.arrivals[i]);
  }
  placed_[was.task] = policy_none;
  timelines_[was.device] = std::move(was.timeline);
  makespan_ = was.makespan;
}

double earliest_finish::answer_seconds(task_id n, uint32_t d) const {
  double sum = 0;
  for (uint32_t v : problem_.outputs(n))
    if (problem_.is_answer(v))
      sum += problem_.move_seconds(v, d, policy_caller);
  return sum;
}

} // namespace troupe
