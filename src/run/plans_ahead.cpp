// What a session makes before a run asks for it: the plan when the model is loaded, the binding of a decoder's next
// step, a plan for other speeds of the devices.
#include "run/session_plans.hpp"

#include "plan/place/policies.hpp"
#include "run/container_inputs.hpp"

#include <algorithm>

namespace troupe {

session_plans::ahead session_plans::prepare_ahead(const ahead& other) {
  const auto is_open = [&](value_id v) { return has_open_rank(model_->source.values[v]); };
  if (std::ranges::any_of(model_->source.inputs, is_open) || !model_->host_inputs.empty())
    return {};
  const named_tensors none;
  const given_inputs nothing{none, {}};
  const auto make = [](const plan_job& job) {
    job.make();
    job.keep();
  };
  if (other.program)
    programs_.keep(nothing, {.program = other.program, .hash = other.hash});
  try {
    while (!programs_.find(nothing, {})) // a program of symbols may ask for one of numbers
      make(programs_.job(nothing, {}, devices_.all_are_cpus(), stats_.rewrite_ms));
  } catch (const error& e) {
    if (e.code() != errc::unsupported || !programs_.has_symbols())
      throw;
    return {}; // numbers may tell what symbols do not
  }
  specialisation& s = *programs_.find(nothing, {});
  s.expected = model_->options.dims;
  // If nothing is decided by predicted times, the first run's dims change nothing.
  s.draft = row_of(model_->options.policy).uses_cost || devices_.copies_matter();
  if (devices_.usable().empty()) // lost since the session chose them: a run will say so
    return {s.program, s.hash, nullptr};
  make(plan_job_for(s, {}, key_of(s, {})));
  ++stats_.plans.misses;
  return {s.program, s.hash, *plans_.find(key_of(s, {}))};
}

std::optional<prepared_run> session_plans::likely_next(const prepared_run& run) {
  std::optional<bindings> symbols = forecast_.next(run.symbols);
  if (!symbols || !is_for(*run.source->compiled, *symbols))
    return std::nullopt;
  prepared_run next{.source = run.source,
                    .symbols = std::move(*symbols),
                    .cached = true,
                    .asked = run.asked,
                    .asked_key = run.asked_key};
  next.key = binding_key(next);
  if (instead_.source_of(next) != run.source) // it is planned when it comes
    return std::nullopt;
  next.bound = find_bound(next);
  return next;
}

plan_job session_plans::bind_job(const prepared_run& next) {
  return bind_job(next, 0, segment_key(next, 0));
}

bool session_plans::find_again(const prepared_run& next) {
  // Since it was prepared, its plan may have been evicted, or another one may have taken its place because it did not
  // fit.
  return plans_.find(next.asked_key) && instead_.source_of(next) == next.source && find_bound(next) == next.bound;
}

void session_plans::use(const plan_beside& made) {
  devices_.use(made.profiles);
  // The keys count the devices' profiles.
  programs_.for_each([](specialisation& s) { s.keys = {}; });
  if (!made.planned)
    return;
  plans_.insert(devices_.kept_key(made.planned->compiled->key), made.planned,
                [this](const planned_model_ptr& old) { bound_.forget_of(old); });
  bound_.insert(segment_key({.source = made.planned, .symbols = made.bound->values}, 0), made.bound);
}

} // namespace troupe
