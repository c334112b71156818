// A task graph as the literature gives it: the seconds of each task on each device, and of each edge if its ends are on
// different ones. The same policy functions that place models schedule it.
#pragma once

#include "plan/place/policy_host.hpp"

#include <string>
#include <vector>

namespace troupe {

/// What `to` reads of what `from` makes.
struct cost_edge {
  task_id from = 0, to = 0;
  double seconds = 0; // if they are on different devices, whichever

  bool operator==(const cost_edge&) const = default;
};

/// Costs of tasks and edges. Tasks are in topological order: `from` < `to` in every edge.
struct cost_matrix {
  uint32_t tasks = 0, devices = 0;
  std::vector<double> seconds; // [task * devices + device]; infinity where it cannot run
  std::vector<cost_edge> edges;
  /// What the seconds of edges are multiplied by, [from * devices + to]; empty: all pairs of devices are alike.
  std::vector<double> pair_factors = {};

  double at(task_id n, uint32_t d) const { return seconds[static_cast<size_t>(n) * devices + d]; }
  double factor(uint32_t from, uint32_t to) const {
    return from == to ? 0 : pair_factors.empty() ? 1 : pair_factors[static_cast<size_t>(from) * devices + to];
  }
};

/// What a cost matrix asks of policies. Nothing comes from a caller or goes back to one, and memory is without end.
class matrix_problem : public policy_host {
public:
  /// Refers to the matrix, which must outlive it. Throws `errc::invalid_argument` for a wrong number of costs, costs
  /// that are negative or no numbers, a task that runs nowhere, edges of tasks that do not exist or against the order.
  explicit matrix_problem(const cost_matrix& costs);

private:
  void check() const;
  void describe_devices();
  void describe_edges();
  void set_questions();

  const cost_matrix& costs_;
  double mean_factor_ = 0; // over pairs of different devices
  std::vector<std::string> names_;
  std::vector<policy_device> device_rows_;
  std::vector<uint8_t> task_flags_, value_flags_;
  std::vector<uint64_t> input_begin_, output_begin_, reader_begin_;
  std::vector<uint32_t> inputs_, outputs_, readers_, producer_, storage_; // a value is an edge
};

/// Returns a schedule with a start for every task: the policy's own where it says all, else each task, in their order,
/// as soon as its device has done those before it and has what it reads. `answer` is one of `problem`.
schedule timed(const policy_problem& problem, schedule answer);

/// Returns when the last task of a timed schedule ends. Throws `errc::internal`, naming the tasks, if a task starts
/// before what it reads can be there, or two of one device overlap.
double makespan_of(const policy_problem& problem, const schedule& made);

/// Returns the makespan of a built-in policy, by its name.
double makespan_by(std::string_view policy, const cost_matrix& costs);

/// Returns the schedule length ratio: the makespan by the seconds of the longest path whose tasks all have the device
/// that is best for them and whose edges take nothing (Topcuoglu, Hariri, Wu 2002, section 5.1). At least 1 for every
/// schedule; 1 for a graph that takes no time.
double length_ratio(const cost_matrix& costs, double makespan);

/// Returns by how much faster a schedule is than the one device that would run all in the least time.
double speedup(const cost_matrix& costs, double makespan);

} // namespace troupe
