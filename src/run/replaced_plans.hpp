// What a session runs instead of a binding that a device cannot take: a plan that spills, or one for that binding's
// dims.
//
// A plan that spills serves other bindings of the plan that it replaces, too, as long as they fit: those of larger dims
// at once, since what they ask for fits no better, others when they have not fitted. One that no longer fits is planned
// again with room to grow, so that a decoder whose caches grow is planned a few times and not in each step.
//
// Not thread-safe.
#pragma once

#include "run/bound_plans.hpp"
#include "run/plan_devices.hpp"
#include "run/plan_job.hpp"
#include "run/prepared_run.hpp"

namespace troupe {

struct replacement {
  planned_model_ptr asked; // what it replaces, for these symbols beside this memory (`prepared_run`)
  bindings symbols;
  std::vector<int64_t> taken;
  planned_model_ptr planned; // null until it is made
  std::function<std::shared_ptr<const plan>()> make;
  bool spills = false;   // because of memory
  bool for_them = false; // made for just these symbols: if they do not fit, nothing does
};
using replacement_ptr = std::shared_ptr<replacement>;

class replaced_plans {
public:
  replaced_plans(const plan_devices& devices, bound_plans& bound);

  /// Returns what is run instead of the binding that `run` begins with; null if it is run itself.
  replacement_ptr find(const prepared_run& run);
  /// Returns the plan by which `run` goes, that or its own; null if it is not made yet.
  planned_model_ptr source_of(const prepared_run& run);
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
  /// Returns the plan that spills, of those for `run.asked` at dims that are nowhere larger, the one for the largest;
  /// null if there is none.
  const replacement* outgrown(const prepared_run& run);
  /// Returns another plan that spills than the one that `run` has tried; null if there is none.
  const replacement* another(const prepared_run& run);
  void insert(const prepared_run& run, replacement with);

  const plan_devices& devices_;
  bound_plans& bound_;
  plan_cache<replacement_ptr> instead_; // by `prepared_run::key`
};

} // namespace troupe
