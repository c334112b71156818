// Plans that a session lacks, made at once on the calling thread.
#pragma once

#include "run/session_plans.hpp"

namespace troupe::test {

/// Looks up until it is there, and makes what is missing. `look(outcome)` returns what it found or the job for it.
/// Throws the errors of the jobs.
template <class Look>
auto find_or_make(Look look) {
  for (plan_outcome made;;) {
    auto found = look(made);
    if (auto* there = std::get_if<0>(&found))
      return std::move(*there);
    const plan_job& job = std::get<plan_job>(found);
    job.make();
    made.add(job, {});
    made.check();
  }
}

} // namespace troupe::test
