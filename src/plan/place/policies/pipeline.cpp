// Contiguous stages in the graph's order, one a device, for several runs in flight: the slowest stage, which bounds the
// throughput, as fast as can be (stages.hpp). A further stage has to lower that, so slow links and devices may be left
// out.
//
// A stage takes the seconds of its nodes on its device, of the callers' inputs that it reads first, of the outputs that
// it makes, and of what crosses its ends. The devices' order is the stages'. What counts otherwise:
// - A pinned node counts for its device, wherever it is. What only fallback devices and control flow run counts for no
//   stage.
// - What a stage's device cannot run goes to the next regular one that can, and the stage waits for it.
// - A value that is read after a cut crosses it, though it may pass the stage between: what passes is overestimated.
// - Memory is the stage's weights, each once, and the most that is live at one of its nodes, whichever stage made it.
//   If no stages fit, they are balanced as if they did: binding says what lacks, and the session spills (`fit_memory`).
#include "plan/arena_space.hpp"
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
  explicit stage_costing(const scheduling_problem& problem)
      : problem_(problem), stands_aside_(problem.task_count()), crossings_(problem.task_count() + 1),
        live_(problem.task_count() + 1, 0) {
    for (task_id n = 0; n < problem.task_count(); ++n)
      stands_aside_[n] =
          problem.pinned(n) != policy_none || problem.is_control(n) || problem.find(n, 0) >= problem.regular_count();
    find_crossings();
    find_live();
  }

  stage_costs find() {
    stage_costs costs{.cuts = static_cast<uint32_t>(problem_.task_count() + 1)};
    std::vector<uint32_t> hosts; // a device of each
    for (size_t at = 0; at < problem_.regular_count(); ++at) {
      const uint32_t d = problem_.order()[at];
      const auto known = std::find_if(hosts.begin(), hosts.end(), [&](uint32_t h) { return host(h) == host(d); });
      device_stages& stages = costs.devices.emplace_back();
      stages.host = static_cast<uint32_t>(known - hosts.begin());
      if (known == hosts.end())
        hosts.push_back(d);
      find_seconds(at, stages);
      find_first(d, stages);
    }
    costs.hosts = static_cast<uint32_t>(hosts.size());
    for (uint32_t from : hosts)
      for (uint32_t to : hosts)
        costs.network.push_back(network(from, to));
    return costs;
  }

private:
  uint32_t host(uint32_t d) const { return problem_.device(d).host; }
  double bytes(uint32_t v) const { return static_cast<double>(problem_.bytes(v)); }

  /// Each value crosses the cuts after its producer and before its last reader.
  void find_crossings() {
    std::vector<crossing> change(crossings_.size() + 1);
    for (uint32_t v = 0; v < problem_.value_count(); ++v) {
      const task_id maker = problem_.producer(v);
      const auto readers = problem_.readers(v);
      if (maker == policy_none || readers.empty())
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

  /// Finds the bytes that are live at each task. Views hold their source's.
  void find_live() {
    std::vector<task_id> last(problem_.value_count(), policy_none); // reader, by root
    for (task_id n = 0; n < problem_.task_count(); ++n) {
      for (uint32_t v : problem_.inputs(n))
        last[problem_.storage(v)] = n;
      for (uint32_t v : problem_.outputs(n))
        if (task_id& known = last[problem_.storage(v)]; known == policy_none || known < n)
          known = n;
    }
    for (uint32_t v = 0; v < problem_.value_count(); ++v) {
      if (problem_.storage(v) != v || last[v] == policy_none || problem_.is_constant(v))
        continue;
      const task_id maker = problem_.producer(v);
      const int64_t space = arena_space(problem_.bytes(v));
      live_[maker != policy_none ? maker : problem_.readers(v).front()] += space;
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

  std::vector<double> network(uint32_t from, uint32_t to) const {
    if (host(from) == host(to))
      return {};
    std::vector<double> by_cut;
    for (const crossing& c : crossings_)
      by_cut.push_back(seconds_of(c, [&](double one) { return problem_.network_seconds(one, from, to); }));
    return by_cut;
  }

  /// Returns the seconds of a task on a device: the caller's inputs that it is the first to read and answers included.
  double seconds(task_id n, uint32_t d) const {
    double sum = problem_.seconds(n, d);
    for (uint32_t v : problem_.inputs(n))
      if (problem_.is_input(v) && problem_.readers(v).front() == n)
        sum += problem_.network_seconds(bytes(v), policy_caller, d) + problem_.receive_seconds(bytes(v), d);
    for (uint32_t v : problem_.outputs(n))
      if (problem_.is_answer(v))
        sum += problem_.network_seconds(bytes(v), d, policy_caller) + problem_.send_seconds(bytes(v), d);
    return sum;
  }

  void find_seconds(size_t at, device_stages& stages) {
    const uint32_t d = problem_.order()[at];
    double pinned = 0, before = 0;
    for (task_id n = 0; n < problem_.task_count(); ++n)
      if (problem_.pinned(n) == d && !problem_.is_control(n))
        pinned += seconds(n, d);
    for (size_t cut = 0; cut < crossings_.size(); ++cut) {
      const crossing& c = crossings_[cut];
      stages.begin.push_back(before - seconds_of(c, [&](double one) { return problem_.receive_seconds(one, d); }));
      stages.end.push_back(pinned + before + seconds_of(c, [&](double one) { return problem_.send_seconds(one, d); }));
      const auto n = static_cast<task_id>(cut);
      if (cut < problem_.task_count() && !stands_aside_[n])
        before += seconds(n, problem_.order()[problem_.find(n, at)]);
    }
  }

  /// Finds the longest stages that the device's memory has room for.
  void find_first(uint32_t d, device_stages& stages) {
    std::vector<uint32_t> uses(problem_.value_count(), 0);
    int64_t weights = 0;
    /// Counts a task's weights in (1) or out (-1).
    const auto count = [&](task_id n, int32_t step) {
      if (!problem_.allows(n, d))
        return;
      for (uint32_t v : problem_.inputs(n))
        if (problem_.is_constant(v)) {
          weights += uses[v] == (step > 0 ? 0 : 1) ? step * arena_space(problem_.bytes(v)) : 0;
          uses[v] += static_cast<uint32_t>(step);
        }
    };
    for (task_id n = 0; n < problem_.task_count(); ++n)
      if (problem_.pinned(n) == d)
        count(n, 1);            // for good
    std::vector<uint32_t> most; // nodes whose live bytes no later one of the stage exceeds, those before `head` aside
    size_t head = 0;
    uint32_t first = 0;
    stages.first.push_back(0);
    for (uint32_t n = 0; n < problem_.task_count(); ++n) {
      const auto counts = [&](task_id m) { return problem_.pinned(m) == policy_none; };
      if (counts(n))
        count(n, 1);
      while (most.size() > head && live_[most.back()] <= live_[n])
        most.pop_back();
      most.push_back(n);
      while (first <= n && weights + live_[most[head]] > problem_.device(d).memory_bytes) {
        if (counts(first))
          count(first, -1);
        head += most[head] == first;
        ++first;
      }
      stages.first.push_back(first);
    }
  }

  const scheduling_problem& problem_;
  std::vector<bool> stands_aside_;  // by node: it is in no stage, whatever stages there are
  std::vector<crossing> crossings_; // by cut
  std::vector<int64_t> live_;       // by node
};

} // namespace

void place_pipeline(const scheduling_problem& problem, schedule& made) {
  if (problem.regular_count() < 2)
    return place_single(problem, made);
  stage_costs costs = stage_costing(problem).find();
  std::vector<stage> stages = balance_stages(costs);
  if (stages.empty()) {
    for (device_stages& d : costs.devices)
      std::fill(d.first.begin(), d.first.end(), 0);
    stages = balance_stages(costs);
  }
  for (const stage& s : stages)
    for (task_id n = s.begin; n < s.end; ++n)
      made.device[n] = problem.order()[problem.find(n, s.device)];
}

} // namespace troupe
