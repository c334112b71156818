// The shortest schedule of a small graph, by branch and bound: what other policies are measured by.
//
// A beginning of a schedule is followed by each task that is ready, on each device, after all that the device has.
// Tasks are added in the order of their starts, so that a schedule is made once. A beginning is left out
//
// - if its bound is not below the best schedule so far: for each task that is not placed, its earliest start if other
//   tasks that are not placed took no device's time, and the least time from there to the end of the graph; and the
//   mean over devices of what they have done and of the least time of what is left;
// - if another one has been followed that has the same tasks, on the same devices as far as others read of them, with
//   no time later, no later last start and no greater sum of starts: what follows the one can follow the other.
//
// Why the sum: of the shortest schedules take one of the least sum of starts. Where its beginning is left out for
// another one, its end after that other one is a shortest schedule of the same sum, in the order of starts, and is
// found or left out in turn for a beginning that was followed before.
//
// The first best schedule is the best of four policies.
#include "plan/place/policies.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

namespace troupe {
namespace {

constexpr uint32_t most_tasks = 14, most_devices = 16;
constexpr size_t most_beginnings = 20'000'000; // half a minute
constexpr size_t most_kept = 500'000;          // of them, to compare others with
constexpr double never = std::numeric_limits<double>::infinity();
using by_device = std::array<double, most_devices>;

class exact_search {
public:
  explicit exact_search(const scheduling_problem& problem) : p_(problem), to_end_(problem.task_count()) {
    if (p_.task_count() > most_tasks || p_.device_count() > most_devices)
      fail(
          errc::unsupported,
          "the policy 'optimal' tries all schedules, which it can do for up to {} tasks on up to {} devices; there are "
          "{} tasks and {} devices. 'local-search' comes close on any number",
          most_tasks, most_devices, p_.task_count(), p_.device_count());
    devices_.resize(p_.task_count());
    for (task_id n = p_.task_count(); n-- > 0;)
      describe(n);
    find_twins();
  }

  void run(schedule& made) {
    for (const auto place : {place_local_search, place_lookahead, place_hbmct, place_peft}) {
      schedule first;
      place(p_, first);
      if (const double makespan = makespan_of(first); makespan < best_) {
        best_ = makespan;
        found_ = std::move(first);
      }
    }
    extend(0, 0);
    made = std::move(found_);
  }

private:
  struct step {
    task_id task;
    uint32_t device;
    double start;
  };

  /// Finds where a task may run, and the least time from its start there to the end of the graph.
  void describe(task_id n) {
    p_.candidates(n, devices_[n]);
    to_end_[n].fill(never);
    for (uint32_t d : devices_[n]) {
      double after = answer(n, d);
      for (uint32_t v : p_.outputs(n))
        for (task_id reader : p_.readers(v)) {
          double least = never;
          for (uint32_t e : devices_[reader])
            least = std::min(least, move(v, d, e) + to_end_[reader][e]);
          after = std::max(after, least);
        }
      to_end_[n][d] = p_.seconds(n, d) + after;
    }
  }

  /// Finds for each device the first one that does the same in the same time.
  void find_twins() {
    for (uint32_t d = 0; d < p_.device_count(); ++d) {
      twin_.push_back(0);
      while (twin_[d] < d && !are_twins(twin_[d], d))
        ++twin_[d];
    }
  }
  bool are_twins(uint32_t a, uint32_t b) const {
    for (task_id n = 0; n < p_.task_count(); ++n)
      if (to_end_[n][a] != to_end_[n][b] || answer(n, a) != answer(n, b) || p_.allows(n, a) != p_.allows(n, b) ||
          (p_.allows(n, a) && p_.seconds(n, a) != p_.seconds(n, b)))
        return false;
    for (uint32_t v = 0; v < p_.value_count(); ++v) {
      if (arrival_from_caller(v, a) != arrival_from_caller(v, b))
        return false;
      for (uint32_t other = 0; p_.producer(v) != policy_none && other < p_.device_count(); ++other)
        if (move(v, a, other == a ? b : other) != move(v, b, other == b ? a : other) ||
            move(v, other == a ? b : other, a) != move(v, other == b ? a : other, b))
          return false;
    }
    return true;
  }

  double move(uint32_t v, uint32_t from, uint32_t to) const {
    return from == to ? 0 : p_.device(from).handover_s + p_.move_seconds(v, from, to);
  }
  double arrival_from_caller(uint32_t v, uint32_t d) const {
    return p_.is_input(v) ? p_.move_seconds(v, policy_caller, d) : 0;
  }
  double answer(task_id n, uint32_t d) const {
    double sum = 0;
    for (uint32_t v : p_.outputs(n))
      sum += p_.is_answer(v) ? p_.move_seconds(v, d, policy_caller) : 0;
    return sum;
  }

  double makespan_of(const schedule& of) const {
    double last = 0;
    for (task_id n = 0; n < p_.task_count(); ++n)
      last = std::max(last, of.start[n] + p_.seconds(n, of.device[n]) + answer(n, of.device[n]));
    return last;
  }

  bool is_placed(uint32_t placed, task_id n) const { return placed >> n & 1; }

  /// Returns the earliest start of a task on a device; makers that are not placed count by `earliest_`.
  double earliest(uint32_t placed, task_id n, uint32_t d) const {
    double start = busy_[d];
    for (uint32_t v : p_.inputs(n)) {
      const task_id maker = p_.producer(v);
      if (maker == policy_none) {
        start = std::max(start, arrival_from_caller(v, d));
        continue;
      }
      double there = never;
      if (is_placed(placed, maker))
        there = finish_[maker] + move(v, device_[maker], d);
      else
        for (uint32_t e : devices_[maker])
          there = std::min(there, std::max(earliest_[maker][e], now_) + p_.seconds(maker, e) + move(v, e, d));
      start = std::max(start, there);
    }
    return start;
  }

  /// Returns a makespan that no schedule with this beginning is shorter than, and finds all earliest starts.
  double bound(uint32_t placed) {
    double longest = makespan_, work = 0;
    for (task_id n = 0; n < p_.task_count(); ++n) {
      if (is_placed(placed, n))
        continue;
      double end = never, least = never;
      for (uint32_t d : devices_[n]) {
        earliest_[n][d] = earliest(placed, n, d);
        end = std::min(end, std::max(earliest_[n][d], now_) + to_end_[n][d]);
        least = std::min(least, p_.seconds(n, d));
      }
      longest = std::max(longest, end);
      work += least;
    }
    for (uint32_t d = 0; d < p_.device_count(); ++d)
      work += std::max(busy_[d], now_);
    return std::max(longest, work / p_.device_count());
  }

  bool is_ready(uint32_t placed, task_id n) const {
    const auto inputs = p_.inputs(n);
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](uint32_t v) { return p_.producer(v) == policy_none || is_placed(placed, p_.producer(v)); });
  }

  /// Returns what may come next, what promises most first.
  std::vector<std::pair<double, step>> next_steps(uint32_t placed) const {
    std::vector<std::pair<double, step>> steps;
    for (task_id n = 0; n < p_.task_count(); ++n) {
      if (is_placed(placed, n) || !is_ready(placed, n))
        continue;
      for (uint32_t d : devices_[n]) // of two that are alike and have done nothing, one is enough
        if ((used_ >> d & 1) || !unused_twin_before(d))
          steps.push_back({earliest_[n][d] + to_end_[n][d], {n, d, earliest_[n][d]}});
    }
    std::stable_sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return steps;
  }
  bool unused_twin_before(uint32_t d) const {
    for (uint32_t e = twin_[d]; e < d; ++e)
      if (twin_[e] == twin_[d] && !(used_ >> e & 1))
        return true;
    return false;
  }

  /// Whether a beginning has been followed that is as good as this one everywhere; else keeps this one.
  bool is_known(uint32_t placed) {
    std::pair<uint32_t, uint64_t> which{placed, 0}; // with the devices of tasks that others will read of
    std::vector<double> times(busy_.begin(), busy_.begin() + p_.device_count());
    times.insert(times.end(), {makespan_, now_, starts_});
    for (task_id n = 0; n < p_.task_count(); ++n) {
      if (!is_placed(placed, n) || !is_awaited(placed, n))
        continue;
      which.second |= uint64_t{device_[n]} << 4 * n;
      times.push_back(finish_[n]);
    }
    std::vector<std::vector<double>>& others = followed_[which];
    for (const std::vector<double>& other : others)
      if (std::equal(other.begin(), other.end(), times.begin(), std::less_equal<>()))
        return true;
    if (kept_ < most_kept) {
      ++kept_;
      others.push_back(std::move(times));
    }
    return false;
  }
  bool is_awaited(uint32_t placed, task_id n) const {
    for (uint32_t v : p_.outputs(n))
      for (task_id reader : p_.readers(v))
        if (!is_placed(placed, reader))
          return true;
    return false;
  }

  /// Tries all that can follow a beginning.
  void extend(uint32_t placed, uint32_t count) {
    if (count == p_.task_count()) {
      if (makespan_ < best_) {
        best_ = makespan_;
        found_ = {{device_.begin(), device_.begin() + count}, {start_.begin(), start_.begin() + count}};
      }
      return;
    }
    if (++beginnings_ > most_beginnings)
      fail(errc::unsupported, "the policy 'optimal' has tried {} beginnings of schedules, and gives up",
           beginnings_ - 1);
    if (bound(placed) >= best_ || is_known(placed))
      return;
    const auto was = std::tuple(busy_, now_, starts_, makespan_, used_);
    for (const auto& [promised, s] : next_steps(placed)) {
      if (promised >= best_ || s.start < now_)
        continue;
      device_[s.task] = s.device;
      start_[s.task] = now_ = s.start;
      starts_ += s.start;
      finish_[s.task] = busy_[s.device] = s.start + p_.seconds(s.task, s.device);
      used_ |= 1u << s.device;
      makespan_ = std::max(makespan_, finish_[s.task] + answer(s.task, s.device));
      extend(placed | 1u << s.task, count + 1);
      std::tie(busy_, now_, starts_, makespan_, used_) = was;
    }
  }

  const scheduling_problem& p_;
  std::vector<std::vector<uint32_t>> devices_; // by task
  std::vector<by_device> to_end_;              // by task: seconds from its start
  std::vector<uint32_t> twin_;                 // by device
  schedule found_;
  double best_ = never;
  size_t beginnings_ = 0, kept_ = 0;
  std::map<std::pair<uint32_t, uint64_t>, std::vector<std::vector<double>>> followed_; // their times
  // The beginning that is looked at.
  std::array<uint32_t, most_tasks> device_{};
  std::array<double, most_tasks> start_{}, finish_{};
  std::array<by_device, most_tasks> earliest_{};
  by_device busy_{};
  uint32_t used_ = 0;                          // devices, as bits
  double now_ = 0, starts_ = 0, makespan_ = 0; // the last start, the sum of all
};

} // namespace

void place_optimal(const scheduling_problem& problem, schedule& made) {
  exact_search(problem).run(made);
}

} // namespace troupe
