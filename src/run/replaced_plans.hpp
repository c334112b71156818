// What a session runs instead of a binding that a device cannot take: a plan that spills, or one for that binding's
// dims. Not thread-safe.
#pragma once

#include "run/bound_plans.hpp"
#include "run/plan_devices.hpp"
#include "run/plan_job.hpp"
#include "run/prepared_run.hpp"

namespace troupe {

struct replacement {
  planned_model_ptr planned; // null until it is made
  std::function<std::shared_ptr<const plan>()> make;
  bool fits = false; // it is the one that spills
};
using replacement_ptr = std::shared_ptr<replacement>;

class replaced_plans {
public:
  replaced_plans(const plan_devices& devices, bound_plans& bound);

  /// Returns what is run instead of the binding that `run` begins with; null if it is run itself.
  replacement_ptr find(const prepared_run& run);
  /// Returns the job that makes it.
  plan_job job(const prepared_run& run, const replacement_ptr& with, double& spent_ms);

  /// Sees to it that the next run with the binding that `run` began with gets a plan in which all segments fit that
  /// `run.symbols` state, or `errc::out_of_memory` if there is none; `why` is how it did not.
  void spill(const prepared_run& run, const memory_shortage& why);
  /// Does so if that can help a run that has found no memory for its first segment; returns whether it can.
  bool spill_first(const prepared_run& run, const memory_shortage& why);
  /// Sees to it that the next run gets a plan for these dims if a device has refused its part of the binding, because
  /// its kernels are for others. Returns false if such a plan was refused, or if a saved plan says what runs where.
  bool plan_exactly(const prepared_run& run);
  /// Forgets those for devices as they were: runs in flight by plans for these would find what has spilled there.
  void forget_old();

private:
  void insert(const prepared_run& run, replacement with);

  const plan_devices& devices_;
  bound_plans& bound_;
  plan_cache<replacement_ptr> instead_; // by `prepared_run::key`
};

} // namespace troupe
