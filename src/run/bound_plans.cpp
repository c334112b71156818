#include "run/bound_plans.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// How many bound plans and layouts a session keeps; two more for each body.
constexpr size_t max_bound_plans = 64;
constexpr size_t max_layouts = 16;

/// Returns whether `bound` is of `planned` or of one of its bodies.
bool is_of(const bound_plan& bound, const planned_model& planned) {
  return bound.source == planned.compiled ||
         std::any_of(planned.bodies.begin(), planned.bodies.end(),
                     [&](const planned_model_ptr& body) { return is_of(bound, *body); });
}

} // namespace

bound_plans::bound_plans(size_t bodies) : bodies_(bodies), kept_(max_bound_plans + 2 * bodies) {
  forget_all();
}

bound_plan_ptr bound_plans::find(const hash128& key) {
  const bound_plan_ptr* const found = kept_.find(key);
  return found ? *found : nullptr;
}

void bound_plans::insert(const hash128& key, bound_plan_ptr made) {
  kept_.insert(key, std::move(made), [this](const bound_plan_ptr& old) { evicted_.push_back(old->id); });
}

template <class Predicate>
void bound_plans::forget_if(Predicate&& unwanted) {
  kept_.erase_if([&](const bound_plan_ptr& old) {
    const bool goes = unwanted(*old);
    if (goes)
      evicted_.push_back(old->id);
    return goes;
  });
}

void bound_plans::forget_all() {
  forget_if([](const bound_plan&) { return true; });
  // New ones, not emptied ones: a job on another thread may be binding in the old ones.
  layouts_ = std::make_shared<layout_buckets>(max_layouts + 2 * bodies_);
}

void bound_plans::forget(uint64_t id) {
  forget_if([&](const bound_plan& old) { return old.id == id; });
}

void bound_plans::forget_of(const planned_model_ptr& planned) {
  if (planned)
    forget_if([&](const bound_plan& old) { return is_of(old, *planned); });
}

} // namespace troupe
