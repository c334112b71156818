#include "run/steps_ahead.hpp"

namespace troupe {

void steps_ahead::expect_next(const execution& before) {
  const execution_values& values = before.values();
  if (ahead_ && ahead_->after() == before.id() && values.has_handed_on() && !ahead_->expect(values.carried()))
    ahead_ = nullptr;
}

void steps_ahead::prepare() {
  execution* const begun = book_.find(std::exchange(begun_, 0));
  if (!begun)
    return;
  capture([&] {
    std::optional<prepared_run> next = plans_.likely_next(begun->prepared());
    if (next && next->bound)
      return make(std::move(*next), begun->id());
    if (!next || todo_.has_job()) // others wait for plans
      return;
    plan_job job = plans_.bind_job(*next);
    todo_.add_after(std::move(job), {install_ahead{std::move(*next), begun->id()}, {}});
  });
}

void steps_ahead::install(const install_ahead& ahead) {
  // A device may have been lost, or have joined, while the job bound the plan.
  if (!plans_.devices().are_of(*ahead.next.source))
    return;
  prepared_run next = ahead.next;
  next.bound = plans_.find_bound(next);
  if (!next.bound)
    return;
  installed_.install_ahead(next.bound, next.source);
  capture([&] { make(std::move(next), ahead.after); });
}

void steps_ahead::make(prepared_run next, execution_id after) {
  const execution* const before = hands_on_ ? book_.find_running(after) : nullptr;
  if (!before || !plans_.known_model().host_inputs.empty())
    return;
  if (const auto& pairs = before->request()->carried.pairs; !pairs->empty())
    ahead_ = run_ahead::make(std::move(next), pairs, completion_, after);
  expect_next(*before);
}

execution* steps_ahead::begin(const run_request_ptr& request) {
  const std::unique_ptr<run_ahead> next = std::move(ahead_);
  if (!next || !next->is(*request) || !plans_.find_again(next->prepared()))
    return nullptr;
  const bound_plan_ptr bound = next->prepared().bound;
  const planned_model_ptr planned = next->prepared().source;
  const auto slot = installed_.take_slot(bound, planned);
  if (!slot)
    return nullptr;
  try {
    run_ahead::begun begun = next->begin(request, *slot);
    commands_.reserve(commands_.size() + begun.sent.size()); // what it has taken counts as sent
    execution& e = book_.add(std::move(begun.run));
    for (auto& [device, chunks] : begun.sent)
      commands_.emplace_back(device_order{planned->devices[device], std::move(chunks)});
    note_begin(e);
    ++plans_.counters().plans.hits;
    ++plans_.counters().bound_plans.hits;
    return &e;
  } catch (...) {
    installed_.leave(bound->id, *slot);
    throw;
  }
}

} // namespace troupe
