#include "schedules/cost_matrix.hpp"

#include "plan/place/policies.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace troupe {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// What memory a value of an edge counts for: bytes of a link of 1 GB/s. Only their ratios matter.
constexpr double bytes_per_second = 1e9;

} // namespace

matrix_problem::matrix_problem(const cost_matrix& costs) : costs_(costs) {
  check();
  describe_devices();
  describe_edges();
  set_questions();
}

void matrix_problem::check() const {
  if (costs_.devices == 0 || costs_.seconds.size() != static_cast<size_t>(costs_.tasks) * costs_.devices)
    fail(errc::invalid_argument, "a cost matrix of {} tasks and {} devices has {} costs", costs_.tasks, costs_.devices,
         costs_.seconds.size());
  const size_t pairs = costs_.pair_factors.size();
  if (pairs != 0 && pairs != static_cast<size_t>(costs_.devices) * costs_.devices)
    fail(errc::invalid_argument, "{} factors are not those of the pairs of {} devices", pairs, costs_.devices);
  for (const double factor : costs_.pair_factors)
    if (!(factor >= 0 && factor < infinity))
      fail(errc::invalid_argument, "an edge cannot take {} times its seconds", factor);
  for (task_id n = 0; n < costs_.tasks; ++n) {
    double least = infinity;
    for (uint32_t d = 0; d < costs_.devices; ++d) {
      if (!(costs_.at(n, d) >= 0))
        fail(errc::invalid_argument, "task {} takes {} seconds on device {}", n, costs_.at(n, d), d);
      least = std::min(least, costs_.at(n, d));
    }
    if (least == infinity)
      fail(errc::invalid_argument, "task {} can run on no device", n);
  }
  for (const cost_edge& e : costs_.edges)
    if (e.from >= e.to || e.to >= costs_.tasks || !(e.seconds >= 0) || e.seconds == infinity)
      fail(errc::invalid_argument,
           "the edge from task {} to task {} of {} seconds cannot be; tasks are numbered so that edges go up", e.from,
           e.to, e.seconds);
}

void matrix_problem::describe_devices() {
  for (uint32_t d = 0; d < costs_.devices; ++d)
    names_.push_back(fmt::format("device {}", d));
  for (const std::string& name : names_)
    device_rows_.push_back({.name = name.c_str(), .memory_bytes = std::numeric_limits<int64_t>::max() / 4});
  asked_.devices = device_rows_.data();
  asked_.device_count = costs_.devices;
  asked_.move_weight = 1;
  const double pairs = static_cast<double>(costs_.devices) * (costs_.devices - 1);
  for (uint32_t from = 0; from < costs_.devices && !costs_.pair_factors.empty(); ++from)
    for (uint32_t to = 0; to < costs_.devices; ++to)
      mean_factor_ += costs_.factor(from, to) / pairs;
  if (costs_.pair_factors.empty())
    mean_factor_ = costs_.devices > 1 ? 1 : 0;
}

void matrix_problem::describe_edges() {
  const size_t edges = costs_.edges.size();
  input_begin_.assign(costs_.tasks + 1, 0);
  output_begin_ = input_begin_;
  for (const cost_edge& e : costs_.edges) {
    ++output_begin_[e.from + 1];
    ++input_begin_[e.to + 1];
  }
  std::partial_sum(input_begin_.begin(), input_begin_.end(), input_begin_.begin());
  std::partial_sum(output_begin_.begin(), output_begin_.end(), output_begin_.begin());
  inputs_.resize(edges);
  outputs_.resize(edges);
  std::vector<uint64_t> next_in = input_begin_, next_out = output_begin_;
  for (uint32_t v = 0; v < edges; ++v) {
    const cost_edge& e = costs_.edges[v];
    inputs_[next_in[e.to]++] = v;
    outputs_[next_out[e.from]++] = v;
    readers_.push_back(e.to);
    producer_.push_back(e.from);
    storage_.push_back(v);
  }
  reader_begin_.resize(edges + 1);
  std::iota(reader_begin_.begin(), reader_begin_.end(), uint64_t{0});
  value_flags_.assign(edges, 0);
  task_flags_.assign(costs_.tasks, 0);
  asked_.task_count = costs_.tasks;
  asked_.value_count = static_cast<uint32_t>(edges);
  asked_.task_flags = task_flags_.data();
  asked_.value_flags = value_flags_.data();
  asked_.input_begin = input_begin_.data();
  asked_.inputs = inputs_.data();
  asked_.output_begin = output_begin_.data();
  asked_.outputs = outputs_.data();
  asked_.reader_begin = reader_begin_.data();
  asked_.readers = readers_.data();
  asked_.producer = producer_.data();
  asked_.storage = storage_.data();
}

void matrix_problem::set_questions() {
  using self = matrix_problem;
  static constexpr auto of = [](void* context) -> const cost_matrix& {
    return static_cast<self*>(static_cast<policy_host*>(context))->costs_;
  };
  asked_.allowed = [](void* c, uint32_t n, uint32_t d) { return of(c).at(n, d) < infinity ? 1 : 0; };
  asked_.seconds = [](void* c, uint32_t n, uint32_t d) { return of(c).at(n, d); };
  asked_.value_bytes = [](void* c, uint32_t v) {
    return static_cast<int64_t>(std::min(of(c).edges[v].seconds * bytes_per_second, 1e18));
  };
  asked_.move_seconds = [](void* c, uint32_t v, uint32_t from, uint32_t to) {
    return of(c).edges[v].seconds * of(c).factor(from, to);
  };
  asked_.mean_move_seconds = [](void* c, uint32_t v) {
    return of(c).edges[v].seconds * static_cast<self*>(static_cast<policy_host*>(c))->mean_factor_;
  };
  asked_.send_seconds = [](void*, double bytes, uint32_t) { return bytes / bytes_per_second; };
  asked_.network_seconds = [](void*, double, uint32_t, uint32_t) { return 0.0; };
  asked_.receive_seconds = [](void*, double, uint32_t) { return 0.0; };
  asked_.has_guessed = [](void*) { return 0; };
  asked_.task_name = [](void* c, uint32_t n) {
    return answered<self>(c, "", [&](self& p) {
      p.text_ = fmt::format("task {}", n);
      return p.text_.c_str();
    });
  };
  asked_.why_not = [](void*, uint32_t) { return "a task takes infinite time on every device"; };
}

schedule timed(const policy_problem& asked, schedule answer) {
  if (std::none_of(answer.start.begin(), answer.start.end(), [](double s) { return std::isnan(s); }))
    return answer;
  const scheduling_problem problem(asked);
  std::vector<double> free(problem.device_count(), 0), end(problem.task_count(), 0);
  for (task_id n = 0; n < problem.task_count(); ++n) {
    const uint32_t d = answer.device[n];
    double start = free[d];
    for (uint32_t v : problem.inputs(n)) {
      const task_id maker = problem.producer(v);
      if (maker == policy_none)
        start = std::max(start, problem.is_everywhere(v) ? 0 : problem.move_seconds(v, policy_caller, d));
      else
        start = std::max(start, end[maker] + (answer.device[maker] == d
                                                  ? 0
                                                  : problem.device(answer.device[maker]).handover_s +
                                                        problem.move_seconds(v, answer.device[maker], d)));
    }
    answer.start[n] = start;
    free[d] = end[n] = start + problem.seconds(n, d);
  }
  return answer;
}

double makespan_of(const policy_problem& asked, const schedule& made) {
  const scheduling_problem problem(asked);
  const auto end = [&](task_id n) { return made.start[n] + problem.seconds(n, made.device[n]); };
  double last = 0;
  for (task_id n = 0; n < problem.task_count(); ++n)
    last = std::max(last, end(n));
  const double rounding = 1e-9 * last;
  std::vector<task_id> order(problem.task_count());
  std::iota(order.begin(), order.end(), task_id{0});
  std::sort(order.begin(), order.end(), [&](task_id a, task_id b) {
    return std::tuple(made.device[a], made.start[a], end(a)) < std::tuple(made.device[b], made.start[b], end(b));
  });
  for (size_t i = 1; i < order.size(); ++i)
    if (made.device[order[i]] == made.device[order[i - 1]] && made.start[order[i]] < end(order[i - 1]) - rounding)
      fail(errc::internal, "{} and {} overlap on device {}", problem.task_name(order[i - 1]),
           problem.task_name(order[i]), made.device[order[i]]);
  for (task_id n = 0; n < problem.task_count(); ++n)
    for (uint32_t v : problem.inputs(n)) {
      const task_id maker = problem.producer(v);
      if (maker == policy_none)
        continue;
      const uint32_t from = made.device[maker], to = made.device[n];
      // A value that comes to a device once is there for all its tasks, so a later reader never waits longer than this.
      const double there =
          end(maker) + (from == to ? 0 : problem.device(from).handover_s + problem.move_seconds(v, from, to));
      if (!(made.start[n] >= there - rounding))
        fail(errc::internal, "{} starts before it has what {} makes", problem.task_name(n), problem.task_name(maker));
    }
  return last;
}

double makespan_by(std::string_view policy, const cost_matrix& costs) {
  matrix_problem problem(costs);
  return makespan_of(problem.asked(), timed(problem.asked(), problem.run(row_of(parse_policy(policy)).place)));
}

double length_ratio(const cost_matrix& costs, double makespan) {
  std::vector<double> least(costs.tasks), before(costs.tasks, 0);
  for (task_id n = 0; n < costs.tasks; ++n) {
    least[n] = infinity;
    for (uint32_t d = 0; d < costs.devices; ++d)
      least[n] = std::min(least[n], costs.at(n, d));
  }
  std::vector<cost_edge> edges = costs.edges;
  std::stable_sort(edges.begin(), edges.end(), [](const cost_edge& a, const cost_edge& b) { return a.from < b.from; });
  double longest = 0;
  for (const cost_edge& e : edges)
    before[e.to] = std::max(before[e.to], before[e.from] + least[e.from]);
  for (task_id n = 0; n < costs.tasks; ++n)
    longest = std::max(longest, before[n] + least[n]);
  return longest > 0 ? makespan / longest : 1;
}

double speedup(const cost_matrix& costs, double makespan) {
  double least = infinity;
  for (uint32_t d = 0; d < costs.devices; ++d) {
    double sum = 0;
    for (task_id n = 0; n < costs.tasks; ++n)
      sum += costs.at(n, d);
    least = std::min(least, sum);
  }
  return makespan > 0 ? least / makespan : 1;
}

} // namespace troupe
