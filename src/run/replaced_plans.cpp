// What a session runs instead of a binding that a device cannot take.
#include "plan/bind/fit_memory.hpp"
#include "run/session_plans.hpp"

namespace troupe {

void session_plans::spill(const prepared_run& run, const memory_shortage& why) {
  run_instead(run, {.make = [asked = run.asked->compiled, symbols = run.symbols, taken = run.taken,
                             why] { return plan_that_fits(*asked, symbols, taken, why); },
                    .fits = true});
}

bool session_plans::spills(const prepared_run& run, const memory_shortage& why) {
  const replacement_ptr other = replacement_of(run);
  if (!is_current(*run.asked) || (other && other->fits))
    return false;
  spill(run, why);
  return true;
}

bool session_plans::plan_exactly(const prepared_run& run) {
  const replacement_ptr other = replacement_of(run);
  if (!is_current(*run.asked) || (other && other->planned != run.source))
    return true; // for the devices as they are; for another run with this binding
  const plan& refused = *run.source->compiled;
  if (refused.options.saved || refused.options.expected == run.symbols)
    return false;
  plan_options options = refused.options;
  options.expected = run.symbols;
  run_instead(run, {.make = [source = run.source->compiled, options] {
                return make_plan(source->given, real_devices(*source), options);
              }});
  return true;
}

session_plans::replacement_ptr session_plans::replacement_of(const prepared_run& run) {
  const replacement_ptr* found = instead_.size() > 0 ? instead_.find(run.key) : nullptr;
  return found ? *found : nullptr;
}

void session_plans::run_instead(const prepared_run& run, replacement with) {
  instead_.insert(run.key, std::make_shared<replacement>(std::move(with)),
                  [this](const replacement_ptr& old) { forget_bound_plans_of(old->planned); });
}

} // namespace troupe
