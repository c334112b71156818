// What a placement policy that is a function of Python is asked.
#pragma once

#include "troupe/policy.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::python {

/// A value that one task makes and another one reads.
struct edge {
  uint32_t from, to, value;
};

/// A policy's problem for as long as the policy is asked; then only what has been found remains. Questions that need
/// the problem throw `errc::invalid_argument` from then on. Not thread-safe.
class question {
public:
  explicit question(const policy_problem* asked);

  void close() { asked_ = nullptr; }

  const policy_problem& asked() const;
  size_t tasks() const { return tasks_; }
  size_t devices() const { return devices_; }

  /// Seconds, [task * devices + device]; infinity where it may not run. Found at the first call.
  const std::vector<double>& times();
  /// Ascending by the task that reads. Found at the first call.
  const std::vector<edge>& edges();
  /// Returns the edges that a task reads: their numbers are from `[task]` on, before `[task + 1]`.
  const std::vector<size_t>& edges_begin() { return edges(), edges_begin_; }

  /// The seconds of an edge between two devices, the wait for the answer included; 0 if they are one.
  double move_seconds(size_t edge, uint32_t from, uint32_t to);
  double mean_move_seconds(size_t edge) const { return asked().mean_move_seconds(asked().context, edges_[edge].value); }

  /// The longest way from each task's begin to the end, by mean times and weighed mean moves (Topcuoglu, Hariri, Wu
  /// 2002), as HEFT here has it.
  const std::vector<double>& ranks();
  /// The tasks, those of higher ranks first.
  const std::vector<uint32_t>& order();

  /// When the last task would end: tasks begin in the order of their ranks, each as soon as its device has done those
  /// before and has what it reads.
  double makespan(std::span<const uint32_t> placed);

private:
  const policy_problem* asked_;
  size_t tasks_, devices_;
  std::vector<double> times_, ranks_;
  std::vector<edge> edges_;
  std::vector<size_t> edges_begin_; // by the task that reads
  std::vector<uint32_t> order_;
};

} // namespace troupe::python
