#include "run/plan_changes.hpp"

#include "plan/place/policies.hpp"

namespace troupe {
namespace {

constexpr size_t most_stated = 64; // bound plans

/// Returns whether values may be on devices before the run or after it.
bool stays(const run_request& request) {
  return !request.options.device_inputs.empty() || !request.options.keep.empty() || !request.carried.empty();
}

/// Returns whether what an execution took says how fast its devices are.
bool can_judge(execution& e) {
  const prepared_run& run = e.prepared();
  return !e.purpose() && run.bound && run.source == run.asked && run.source->devices.size() > 1 &&
         e.source().segment_count == 1 && e.source().bodies.empty() && !e.request()->options.trace;
}

} // namespace

bool follows_speeds(const model& m) {
  return row_of(m.options.policy).uses_cost && !m.saved;
}

void plan_changes::ended(execution& e) {
  if (!watches_)
    return;
  watches_ = !stays(*e.request());
  const prepared_run& run = e.prepared();
  const speed_watch::ended_run* const stated =
      can_judge(e) && plans_.devices().are_of(*run.source) ? this->stated(run) : nullptr;
  if (!stated)
    return watch_.skip(now_);
  speed_watch::ended_run measured = *stated;
  for (size_t d = 0; d < measured.devices.size(); ++d)
    measured.devices[d].measured_s = static_cast<double>(e.costs().busy_ns()[d]) * 1e-9;
  switch (watch_.ended(measured, now_)) {
    case speed_watch::advice::go_on: return;
    case speed_watch::advice::plan: return ask(run);
    case speed_watch::advice::take_back: return plans_.use({.profiles = before_});
  }
}

const speed_watch::ended_run* plan_changes::stated(const prepared_run& run) {
  const uint64_t id = run.bound->id;
  if (stated_.size() >= most_stated && !stated_.contains(id))
    stated_.clear();
  const auto [known, is_new] = stated_.try_emplace(id);
  if (known->second)
    return &*known->second;
  if (is_new || todo_.has_job()) // many run once; others wait for plans
    return nullptr;
  todo_.add_after(make_job(
                      plan_level::times, plans_.counters().plan_ms,
                      [planned = run.source, bound = run.bound, stated = plans_.devices().stated()] {
                        return stated_times(*planned, *bound, stated);
                      },
                      [this, id](speed_watch::ended_run made) { stated_[id] = std::move(made); }),
                  {change_plans{}, {}});
  return nullptr;
}

void plan_changes::ask(const prepared_run& run) {
  if (todo_.has_job())
    return watch_.refuse(true);
  const plan_devices& devices = plans_.devices();
  const plan_options& options = run.source->compiled->options;
  const model& m = plans_.known_model();
  const auto made = std::make_shared<plan_beside>();
  const auto make =
      [asked = beside_question{.used = run,
                               .devices = devices.infos(),
                               .options = devices.options_for(m, options.expected, plan_devices::use_of(m, options)),
                               .stated = devices.stated(),
                               .paces = watch_.paces(devices.stated().size(), now_),
                               .in_flight = watch_.in_flight(),
                               .layouts = plans_.bound().layouts()}] { return make_beside(asked); };
  todo_.add_after(make_job(plan_level::times, plans_.counters().plan_ms, make,
                           [made](plan_beside result) { *made = std::move(result); }),
                  {change_plans{made}, {}});
}

void plan_changes::take(const change_plans& made, bool ok) {
  if (!made.to)
    return;
  if (!ok || !plans_.devices().are_of(*made.to->planned))
    return watch_.refuse(false);
  if (!watch_.take(made.to->figures, now_))
    return;
  before_ = plans_.devices().profiles();
  plans_.use(*made.to);
  stated_[made.to->bound->id] = made.to->stated;
}

} // namespace troupe
