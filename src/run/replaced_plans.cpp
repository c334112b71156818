#include "run/replaced_plans.hpp"

#include "plan/bind/fit_memory.hpp"
#include "plan/bind/layout_buckets.hpp"

namespace troupe {
namespace {

constexpr size_t max_replaced = 64;

/// Returns whether no symbol is larger in `a`, and both have the same.
bool none_larger(const bindings& a, const bindings& b) {
  return std::ranges::equal(a, b,
                            [](const auto& x, const auto& y) { return x.first == y.first && x.second <= y.second; });
}

bool is_for(const replacement& r, const prepared_run& run) {
  return r.spills && r.planned && r.asked->compiled->key == run.asked->compiled->key && r.taken == run.taken;
}

/// Returns `now` with room for those symbols that have grown since `before`, as a layout has it for its bindings: the
/// same for all if they have grown together.
bindings with_room(const bindings& now, const bindings& before) {
  std::map<std::string, int64_t> growth;
  for (const auto& [name, value] : now)
    if (const int64_t more = value - before.at(name); more > 0)
      growth[name] = more;
  const bool together = std::ranges::all_of(growth, [&](const auto& g) { return g.second == growth.begin()->second; });
  int64_t largest = 0;
  for (const auto& [name, more] : growth)
    largest = std::max(largest, now.at(name));
  bindings raised = now;
  for (const auto& [name, more] : growth)
    raised[name] = together ? now.at(name) + bucket_capacity(largest) - largest : bucket_capacity(now.at(name));
  return raised;
}

} // namespace

replaced_plans::replaced_plans(const plan_devices& devices, bound_plans& bound)
    : devices_(devices), bound_(bound), instead_(max_replaced) {}

replacement_ptr replaced_plans::find(const prepared_run& run) {
  if (instead_.size() == 0)
    return nullptr;
  if (const replacement_ptr* const found = instead_.find(run.key))
    return *found;
  const replacement* const other = outgrown(run);
  return other ? std::make_shared<replacement>(replacement{.planned = other->planned, .spills = true}) : nullptr;
}

planned_model_ptr replaced_plans::source_of(const prepared_run& run) {
  const replacement_ptr other = find(run);
  return other ? other->planned : run.asked;
}

const replacement* replaced_plans::outgrown(const prepared_run& run) {
  const replacement* largest = nullptr;
  instead_.for_each([&](const replacement_ptr& r) {
    if (is_for(*r, run) && none_larger(r->symbols, run.symbols) &&
        (!largest || none_larger(largest->symbols, r->symbols)))
      largest = r.get();
  });
  return largest;
}

const replacement* replaced_plans::another(const prepared_run& run) {
  const replacement* found = nullptr;
  instead_.for_each([&](const replacement_ptr& r) {
    if (!found && is_for(*r, run) && r->planned != run.source)
      found = r.get();
  });
  return found;
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
  const bool first = !instead_.find(run.key);
  if (const replacement* const other = first ? another(run) : nullptr)
    return insert(run, {.planned = other->planned, .spills = true});
  const replacement* const before = first ? outgrown(run) : nullptr;
  const bindings room = before ? with_room(run.symbols, before->symbols) : run.symbols;
  insert(run, {.make =
                   [asked = run.asked->compiled, symbols = run.symbols, room, taken = run.taken, why] {
                     if (room != symbols)
                       try {
                         return plan_that_fits(*asked, room, taken, why);
                       } catch (const error&) {
                       } // they contradict the model, or are too large
                     return plan_that_fits(*asked, symbols, taken, why);
                   },
               .spills = true,
               .for_them = room == run.symbols});
}

bool replaced_plans::spill_first(const prepared_run& run, const memory_shortage& why) {
  const replacement_ptr other = find(run);
  if (!devices_.are_of(*run.asked) || (other && other->for_them))
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
  with.asked = run.asked;
  with.symbols = run.symbols;
  with.taken = run.taken;
  instead_.insert(run.key, std::make_shared<replacement>(std::move(with)), [this](const replacement_ptr& old) {
    bool shared = false;
    instead_.for_each([&](const replacement_ptr& r) { shared |= r != old && r->planned == old->planned; });
    if (!shared)
      bound_.forget_of(old->planned);
  });
}

} // namespace troupe
