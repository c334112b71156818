#include "plan/place/scheduling_problem.hpp"

namespace troupe {

scheduling_problem::scheduling_problem(const policy_problem& asked) : policy_tasks(asked) {
  for (const bool fallback : {false, true}) {
    for (uint32_t d = 0; d < asked.device_count; ++d)
      if (is_fallback(d) == fallback)
        order_.push_back(d);
    if (!fallback)
      regular_ = order_.size();
  }
}

size_t scheduling_problem::find(task_id n, size_t start) const {
  for (size_t i = 0; i < order_.size(); ++i) {
    const size_t at = i < regular_ ? (start + i) % regular_ : i;
    if (allows(n, order_[at]))
      return at;
  }
  throw error(errc::unsupported, asked_.why_not(asked_.context, n));
}

void scheduling_problem::candidates(task_id n, std::vector<uint32_t>& into) const {
  into.clear();
  for (size_t i = 0; i < order_.size() && (i < regular_ || into.empty()); ++i)
    if (allows(n, order_[i]))
      into.push_back(order_[i]);
  if (into.empty())
    find(n, 0); // throws, and says why
}

} // namespace troupe
