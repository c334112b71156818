// The bound plans that a session keeps, and the arena layouts that they share, by buckets of their dims
// (plan/bind/layout_buckets.hpp). Not thread-safe.
#pragma once

#include "plan/bind/layout_buckets.hpp"
#include "run/model.hpp"

#include <utility>

namespace troupe {

class bound_plans {
public:
  /// `bodies`: of the model's control flow, for which more are kept.
  explicit bound_plans(size_t bodies);

  /// Returns null if there is none.
  bound_plan_ptr find(const hash128& key);
  void insert(const hash128& key, bound_plan_ptr made);
  /// Used by the job that binds, and by no other meanwhile.
  const std::shared_ptr<layout_buckets>& layouts() const { return layouts_; }

  /// Forgets all, layouts included.
  void forget_all();
  void forget(uint64_t id);
  /// Forgets those of a plan that is not kept any more, and of its bodies; nothing if there is none.
  void forget_of(const planned_model_ptr& planned);

  /// Returns ids of those that have left since the last call.
  std::vector<uint64_t> take_evicted() { return std::exchange(evicted_, {}); }
  /// Returns how many had to go for others.
  uint64_t evictions() const { return kept_.evictions(); }

private:
  template <class Predicate>
  void forget_if(Predicate&& unwanted);

  const size_t bodies_;
  plan_cache<bound_plan_ptr> kept_;
  std::shared_ptr<layout_buckets> layouts_;
  std::vector<uint64_t> evicted_;
};

} // namespace troupe
