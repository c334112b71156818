#include "run/agenda.hpp"

namespace troupe {

void agenda::add_after(plan_job job, task next) {
  if (job_)
    return later_.push_back(std::move(next));
  commands_.push_back(plan_wanted{++jobs_, job.make});
  job_ = running_job{std::move(job), std::move(next)};
}

void agenda::on(const planned& answer) {
  if (!job_ || answer.job != jobs_)
    return; // spurious
  auto [job, then] = *std::exchange(job_, std::nullopt);
  // Kept even if the run that asked has ended meanwhile: the next run with such inputs finds it.
  then.made.add(job, answer.why);
  add(std::move(then));
}

std::optional<task> agenda::next() {
  // What waits for a job is taken one at a time: the first may begin a job of its own, and then the others wait again.
  std::deque<task>& from = now_.empty() && !job_ ? later_ : now_;
  if (from.empty())
    return std::nullopt;
  std::optional<task> first = std::move(from.front());
  from.pop_front();
  return first;
}

} // namespace troupe
