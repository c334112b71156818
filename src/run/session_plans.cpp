#include "run/session_plans.hpp"

#include "graph/bodies.hpp"
#include "graph/element_symbols.hpp"
#include "plan/bind/bind_inputs.hpp"
#include "plan/place/policies.hpp"
#include "plan/plan_key.hpp"
#include "rewrite/rewrite.hpp"
#include "run/container_inputs.hpp"

namespace troupe {
namespace {

constexpr size_t max_plans = 2 * specialisations::most; // those for the devices as they are, and as they were

std::vector<std::string> output_names(const model& m) {
  std::vector<std::string> names;
  for (const value_info& output : m.outputs)
    names.push_back(output.name);
  return names;
}

/// Returns the job, whose errors about the model or its inputs name a contradiction between the inputs' dims too.
plan_job explained(plan_job job, std::string contradiction) {
  job.make = [make = std::move(job.make), contradiction = std::move(contradiction)] {
    try {
      make();
    } catch (const error& e) {
      if (e.code() != errc::invalid_input && e.code() != errc::invalid_model && e.code() != errc::unsupported)
        throw;
      fail(e.code(), "{}; {}", e.what(), contradiction);
    }
  };
  return job;
}

} // namespace

session_plans::session_plans(model_ptr m, std::vector<device_info> devices, const std::vector<size_t>& lost,
                             std::vector<std::string> only)
    : model_(std::move(m)), devices_(std::move(devices), lost, std::move(only)), programs_(model_), plans_(max_plans),
      bound_(count_bodies(model_->source)), instead_(devices_, bound_) {
  stats_.load_ms = model_->load_ms;
}

// -- jobs

plan_job session_plans::plan_job_for(const specialisation& s, plan_use use, const hash128& key) {
  return make_job(
      plan_level::plan, stats_.plan_ms,
      [model = model_, program = s.program, infos = devices_.infos(), devices = devices_.usable(),
       options = devices_.options_for(*model_, s.expected, use), inputs = s.program_input] {
        return describe_plan(make_plan(program, infos, options), devices, output_names(*model), inputs);
      },
      [this, key](planned_model_ptr made) {
        plans_.insert(key, std::move(made), [this](const planned_model_ptr& old) { bound_.forget_of(old); });
      });
}

plan_job session_plans::bind_job(const prepared_run& run, uint32_t segment, const hash128& key) {
  struct binding {
    bound_plan_ptr bound;
    std::optional<memory_shortage> shortage;
    cache_stats layouts; // what it adds
  };
  return make_job(
      plan_level::bound_plan, stats_.plan_ms,
      [layouts = bound_.layouts(), source = run.source->compiled, symbols = run.symbols, segment] {
        binding made;
        const cache_stats before = layouts->stats();
        try {
          made.bound = layouts->bind(source, segment, symbols);
        } catch (const memory_shortage& e) {
          made.shortage = e;
        }
        made.layouts = layouts->stats() - before;
        return made;
      },
      [this, run, segment, key](binding made) {
        stats_.layouts += made.layouts;
        if (made.bound)
          bound_.insert(key, std::move(made.bound));
        else if (segment > 0 || !instead_.spill_first(run, *made.shortage))
          throw *made.shortage;
      });
}

// -- lookups

hash128 session_plans::key_of(specialisation& s, plan_use use) {
  std::optional<hash128>& key = s.keys[use.index()];
  if (!key)
    key = devices_.kept_key(plan_key(s.hash, devices_.infos(), devices_.options_for(*model_, s.expected, use)));
  return *key;
}

std::variant<prepared_run, plan_job> session_plans::prepare(const given_inputs& inputs, const plan_outcome& made) {
  const std::vector<given_inputs::facts> given = check_inputs(*model_, inputs);
  auto found = prepare_checked(inputs, given, made);
  if (auto* job = std::get_if<plan_job>(&found))
    if (std::string contradiction = programs_.contradiction(given); !contradiction.empty())
      *job = explained(std::move(*job), std::move(contradiction));
  return found;
}

std::variant<prepared_run, plan_job> session_plans::prepare_checked(const given_inputs& inputs,
                                                                    const std::vector<given_inputs::facts>& given,
                                                                    const plan_outcome& made) {
  specialisation* s = programs_.find(inputs, given);
  if (!s)
    return programs_.job(inputs, given, devices_.all_are_cpus(), stats_.rewrite_ms);
  prepared_run run;
  run.symbols = programs_.symbols(*s, given);
  // The plan that was made when the model was loaded knew no dims. It is made once more for those of the first run.
  if (std::exchange(s->draft, false)) {
    s->expected = run.symbols;
    s->keys = {};
  }
  plan_use use{.stay = devices_.copies_matter() && inputs.stay()};
  const planned_model_ptr* planned = nullptr;
  do {
    run.asked_key = key_of(*s, use);
    planned = plans_.find(run.asked_key);
    if (!planned)
      return plan_job_for(*s, use, run.asked_key);
  } while (!is_for(*(*planned)->compiled, run.symbols) && !std::exchange(use.whole, true));
  run.asked = *planned;
  run.cached = !made.plan_made;
  if (auto job = bind_first(run, made))
    return std::move(*job);
  ++(made.plan_made ? stats_.plans.misses : stats_.plans.hits);
  return run;
}

std::variant<prepared_run, plan_job> session_plans::prepare_body(const planned_model_ptr& body,
                                                                 std::span<const tensor> inputs, const bindings& around,
                                                                 std::vector<int64_t> taken, const plan_outcome& made) {
  const graph& program = *body->compiled->program;
  expects(inputs.size() == program.inputs.size(), "prepare_body: another number of inputs than the body has");
  bindings given;
  for (const auto& [name, value] : around)
    if (body->symbols.contains(name))
      given.emplace(name, value);
  std::vector<const shape*> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    shapes.push_back(&inputs[i].dims());
    bind_elements(program.values[program.inputs[i]], inputs[i], given);
  }
  prepared_run run{
      .symbols = input_symbols(program).bind(shapes, given), .cached = true, .taken = std::move(taken), .asked = body};
  if (auto job = bind_first(run, made))
    return std::move(*job);
  return run;
}

std::optional<plan_job> session_plans::bind_first(prepared_run& run, const plan_outcome& made) {
  run.key = binding_key(run);
  for (;;) {
    const replacement_ptr other = instead_.find(run);
    if (other && !other->planned)
      return instead_.job(run, other, stats_.plan_ms);
    run.source = other ? other->planned : run.asked;
    try {
      auto found = bind(run, 0, made);
      if (auto* job = std::get_if<plan_job>(&found))
        return std::move(*job);
      run.bound = std::get<bound_plan_ptr>(std::move(found));
      return std::nullopt;
    } catch (const memory_shortage& e) {
      // The next round finds the plan that is to be made in its place.
      if (!instead_.spill_first(run, e))
        throw;
    }
  }
}

std::variant<bound_plan_ptr, plan_job> session_plans::bind(prepared_run& run, uint32_t segment,
                                                           const plan_outcome& made) {
  const hash128 key = segment_key(run, segment);
  bound_plan_ptr found = bound_.find(key);
  if (!found)
    return bind_job(run, segment, key);
  if (!run.taken.empty() && run.source == run.asked) // what spills was made for what is left
    check_memory(*found->layout, run.taken);
  run.cached &= !made.bound_plan_made;
  ++(made.bound_plan_made ? stats_.bound_plans.misses : stats_.bound_plans.hits);
  return found;
}

// -- devices

void session_plans::add_device(const device_info& device) {
  if (devices_.add(device, model_->saved != nullptr)) {
    instead_.forget_old();
    devices_changed();
  }
}

void session_plans::remove_device(size_t device) {
  if (devices_.remove(device)) {
    instead_.forget_old();
    devices_changed();
  }
}

void session_plans::lower_memory(size_t device, int64_t needed) {
  devices_.lower_memory(device, needed);
  devices_changed();
}

void session_plans::restore_memory() {
  if (devices_.restore_memory())
    devices_changed();
}

void session_plans::devices_changed() {
  programs_.for_each([](specialisation& s) { s.keys = {}; });
  bound_.forget_all();
}

session_stats session_plans::stats() const {
  session_stats stats = stats_;
  stats.plans.evictions = plans_.evictions();
  stats.bound_plans.evictions = bound_.evictions();
  return stats;
}

} // namespace troupe
