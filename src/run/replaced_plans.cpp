#include "run/replaced_plans.hpp"

#include "plan/bind/fit_memory.hpp"

namespace troupe {
namespace {

constexpr size_t max_replaced = 64;

} // namespace

replaced_plans::replaced_plans(const plan_devices& devices, bound_plans& bound)
    : devices_(devices), bound_(bound), instead_(max_replaced) {}

replacement_ptr replaced_plans::find(const prepared_run& run) {
  const replacement_ptr* found = instead_.size() > 0 ? instead_.find(run.key) : nullptr;
  return found ? *found : nullptr;
}

plan_job replaced_plans::job(const prepared_run& run, const replacement_ptr& with, double& spent_ms) {
  return make_job(
      plan_level::replacement, spent_ms,
      [asked = run.asked, make = with->make] {
        return describe_plan(make(), asked->devices, asked->output_names, asked->program_input);
      },
      [with](planned_model_ptr made) { with->planned = std::move(made); });
}

void replaced_plans::spill(const prepared_run& run, const memory_shortage& why) {
  insert(run, {.make = [asked = run.asked->compiled, symbols = run.symbols, taken = run.taken,
                        why] { return plan_that_fits(*asked, symbols, taken, why); },
               .fits = true});
}

bool replaced_plans::spill_first(const prepared_run& run, const memory_shortage& why) {
  const replacement_ptr other = find(run);
  if (!devices_.are_of(*run.asked) || (other && other->fits))
    return false;
  spill(run, why);
  return true;
}

bool replaced_plans::plan_exactly(const prepared_run& run) {
  const replacement_ptr other = find(run);
  if (!devices_.are_of(*run.asked) || (other && other->planned != run.source))
    return true; // for the devices as they are; for another run with this binding
  const plan& refused = *run.source->compiled;
  if (refused.options.saved || refused.options.expected == run.symbols)
    return false;
  plan_options options = refused.options;
  options.expected = run.symbols;
  insert(run, {.make = [source = run.source->compiled, options] {
           return make_plan(source->given, real_devices(*source), options);
         }});
  return true;
}

void replaced_plans::forget_old() {
  instead_.erase_if([this](const replacement_ptr& old) { return !old->planned || !devices_.are_of(*old->planned); });
}

void replaced_plans::insert(const prepared_run& run, replacement with) {
  instead_.insert(run.key, std::make_shared<replacement>(std::move(with)),
                  [this](const replacement_ptr& old) { bound_.forget_of(old->planned); });
}

} // namespace troupe
