// Plans that are made elsewhere meanwhile: one job at a time, in the order in which they are asked for.
#include "base/shared_work.hpp"
#include "run/session_machine.hpp"

namespace troupe {

void session_machine::want(plan_wish wish, plan_job job) {
  if (job_) // when that has ended, this may be there already
    return wishes_.push_back(std::move(wish));
  commands_.push_back(plan_wanted{++jobs_, job.make});
  job_ = running_job{std::move(job), std::move(wish)};
}

void session_machine::on(const planned& answer) {
  if (!job_ || answer.job != jobs_)
    return; // spurious
  auto [job, wish] = *std::exchange(job_, std::nullopt);
  wish.made.add(job, answer.why);
  retire_evicted();
  fulfil(wish);
  while (!job_ && !wishes_.empty()) {
    const plan_wish next = std::move(wishes_.front());
    wishes_.pop_front();
    fulfil(next);
  }
}

void session_machine::fulfil(const plan_wish& wish) {
  std::visit([&](const auto& what) { fulfil(what, wish.made); }, wish.what);
}

void session_machine::fulfil(const begin_run& run, const plan_outcome& made) {
  if (run.request->answered)
    return;
  if (made.ok() && must_wait()) // for memory; it finds its plan later
    wait(run.request);
  else
    start_attempt(run.request, made);
}

void session_machine::fulfil(const begin_segment& next, const plan_outcome& made) {
  const auto found = executions_.find(next.execution);
  if (found == executions_.end() || found->second->stopped())
    return; // of a run that has ended
  execution& e = *found->second;
  const failure why = capture([&] { start_segment(e, next.segment, made); });
  if (why.failed())
    end_early(e, why);
}

bool session_machine::use_spare_time() {
  // It may be of many pieces, and this the caller's thread. It ends here if there is no memory for handing it over, or
  // if it has handed these pieces on: what a thread has allocated it finds again soonest where it has freed it itself.
  if (ended_ && !ended_->has_handed_on())
    capture([&] { troupe::let_go(std::move(ended_)); });
  ended_ = nullptr;
  const auto begun = executions_.find(std::exchange(begun_, 0));
  if (begun == executions_.end())
    return false;
  capture([&] { // a failure is the run's that needs it: it looks again
    std::optional<prepared_run> next = plans_->likely_next(begun->second->prepared());
    if (next && next->bound)
      return make_ahead(std::move(*next), begun->first);
    if (!next || job_) // others wait for plans
      return;
    plan_job job = plans_->bind_job(*next);
    want({install_ahead{std::move(*next), begun->first}, {}}, std::move(job));
  });
  return !commands_.empty();
}

void session_machine::fulfil(const install_ahead& ahead, const plan_outcome& made) {
  // A failure is the run's that needs it: it looks again.
  if (!made.ok() || !plans_->is_current(*ahead.next.source))
    return;
  prepared_run next = ahead.next;
  next.bound = plans_->find_bound(next);
  if (!next.bound)
    return;
  installed_.install_ahead(next.bound, next.source);
  capture([&] { make_ahead(std::move(next), ahead.after); });
}

void session_machine::make_ahead(prepared_run next, execution_id after) {
  const auto found = executions_.find(after);
  if (!hands_on_ || found == executions_.end() || found->second->stopped() || !plans_->host_inputs().empty())
    return;
  const execution& before = *found->second;
  if (const auto& pairs = before.request()->carried.pairs; !pairs->empty())
    ahead_ = run_ahead::make(std::move(next), pairs, completion_, after);
  expect_next(before);
}

void session_machine::expect_next(const execution& before) {
  if (ahead_ && ahead_->after() == before.id() && before.has_handed_on() && !ahead_->expect(before.collect_carried()))
    ahead_ = nullptr;
}

execution* session_machine::begin_ahead(const run_request_ptr& request) {
  const std::unique_ptr<run_ahead> next = std::move(ahead_);
  if (!next || !next->is(*request) || !plans_->find_again(next->prepared()))
    return nullptr;
  const bound_plan_ptr bound = next->prepared().bound;
  const planned_model_ptr planned = next->prepared().source;
  const auto slot = installed_.take_slot(bound, planned);
  if (!slot)
    return nullptr;
  try {
    run_ahead::begun begun = next->begin(request, *slot);
    commands_.reserve(commands_.size() + begun.sent.size()); // what it has taken counts as sent
    execution& e = *begun.run;
    executions_.emplace(e.id(), std::move(begun.run));
    for (auto& [device, chunks] : begun.sent)
      send(planned->devices[device], std::move(chunks));
    begun_ = e.id();
    plans_->count_found();
    return &e;
  } catch (...) {
    installed_.leave(bound->id, *slot);
    throw;
  }
}

void session_machine::answer_query(uint64_t query, const named_tensors& inputs, const plan_outcome& made) {
  query_answer answer{.query = query};
  std::optional<plan_job> missing;
  answer.why = capture([&] {
    check_device_left();
    made.check();
    auto found = plans_->prepare({inputs, {}}, made);
    if (auto* job = std::get_if<plan_job>(&found))
      missing = std::move(*job);
    else
      answer.bound = std::get<prepared_run>(found).bound;
  });
  retire_evicted();
  if (missing)
    want({begin_answer{query, inputs}, made}, std::move(*missing));
  else
    commands_.push_back(std::move(answer));
}

std::vector<run_request_ptr> session_machine::runs_that_wait_for_plans() const {
  std::vector<run_request_ptr> runs;
  const auto add = [&](const plan_wish& wish) {
    if (const auto* run = std::get_if<begin_run>(&wish.what); run && !run->request->answered)
      runs.push_back(run->request);
  };
  if (job_)
    add(job_->wish);
  for (const plan_wish& wish : wishes_)
    add(wish);
  return runs;
}

} // namespace troupe
