#include "run/session_plans.hpp"

#include "graph/bodies.hpp"
#include "graph/element_symbols.hpp"
#include "plan/bind/bind_inputs.hpp"
#include "plan/place/policies.hpp"
#include "plan/plan_key.hpp"
#include "rewrite/rewrite.hpp"
#include "run/container_inputs.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// How many specialisations, plans, bound plans and layouts a session keeps; of bound plans and layouts two more for
/// each body.
constexpr size_t max_plans = 2 * specialisations::most; // those for the devices as they are, and as they were
constexpr size_t max_bound_plans = 64;
constexpr size_t max_layouts = 16;

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

/// Returns whether `bound` is of `planned` or of one of its bodies.
bool is_of(const bound_plan& bound, const planned_model& planned) {
  return bound.source == planned.compiled ||
         std::any_of(planned.bodies.begin(), planned.bodies.end(),
                     [&](const planned_model_ptr& body) { return is_of(bound, *body); });
}

} // namespace

session_plans::session_plans(model_ptr m, std::vector<device_info> devices, const std::vector<size_t>& lost,
                             std::vector<std::string> only)
    : model_(std::move(m)), devices_(std::move(devices)), only_(std::move(only)), programs_(model_), plans_(max_plans),
      bound_(max_bound_plans + 2 * count_bodies(model_->source)), instead_(max_bound_plans) {
  for (size_t d = 0; d < devices_.size(); ++d)
    if (allows(devices_[d]) && std::find(lost.begin(), lost.end(), d) == lost.end())
      usable_.push_back(d);
  order_usable();
  first_ = usable_;
  for (size_t d : lost)
    if (allows(devices_[d]) && !has_name(first_, devices_[d].name))
      first_.push_back(d);
  forget_layouts();
  stats_.load_ms = model_->load_ms;
}

// -- jobs

plan_job session_plans::plan_job_for(const specialisation& s, bool stay, const hash128& key) {
  return make_job(
      plan_level::plan, stats_.plan_ms,
      [model = model_, program = s.program, infos = usable_devices(), devices = usable_,
       options = options_for(s.expected, stay), inputs = s.program_input] {
        return describe_plan(make_plan(program, infos, options), devices, output_names(*model), inputs);
      },
      [this, key](planned_model_ptr made) {
        plans_.insert(key, std::move(made), [this](const planned_model_ptr& old) { forget_bound_plans_of(old); });
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
      [layouts = layouts_, source = run.source->compiled, symbols = run.symbols, segment] {
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
          bound_.insert(key, std::move(made.bound), [this](const bound_plan_ptr& old) { evicted_.push_back(old->id); });
        else if (segment > 0 || !spills(run, *made.shortage))
          throw *made.shortage;
      });
}

plan_job session_plans::replace_job(const prepared_run& run, const replacement_ptr& with) {
  return make_job(
      plan_level::replacement, stats_.plan_ms,
      [asked = run.asked, make = with->make] {
        return describe_plan(make(), asked->devices, asked->output_names, asked->program_input);
      },
      [with](planned_model_ptr made) { with->planned = std::move(made); });
}

// -- lookups

hash128 session_plans::key_of(specialisation& s, bool stay) {
  std::optional<hash128>& key = s.keys[stay];
  if (!key) {
    hasher h;
    h.add(plan_key(s.hash, usable_devices(), options_for(s.expected, stay)));
    for (size_t d : usable_) // a device that came back is another one, though it may be equal
      h.add(d);
    key = h.digest();
  }
  return *key;
}

hash128 session_plans::key_of(const prepared_run& run) {
  hasher h;
  h.add(run.asked->compiled->key);
  for (const auto& [name, value] : run.symbols)
    h.add(value); // a plan's symbols are always the same
  for (int64_t bytes : run.taken)
    h.add(bytes);
  return h.digest();
}

hash128 session_plans::bound_key_of(const prepared_run& run, uint32_t segment) {
  hasher h;
  h.add(run.source->serial);
  h.add(segment);
  for (const auto& [name, value] : run.symbols)
    h.add(value);
  return h.digest();
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
    return programs_.job(inputs, given, all_are_cpus(), stats_.rewrite_ms);
  prepared_run run;
  run.symbols = programs_.symbols(*s, given);
  if (std::exchange(s->draft, false)) {
    s->expected = run.symbols;
    s->keys = {};
  }
  const bool stay = copies_matter() && inputs.stay();
  const hash128 asked = key_of(*s, stay);
  const planned_model_ptr* planned = plans_.find(asked);
  if (!planned)
    return plan_job_for(*s, stay, asked);
  run.asked = *planned;
  run.asked_key = asked;
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
  run.key = key_of(run);
  for (;;) {
    const replacement_ptr other = replacement_of(run);
    if (other && !other->planned)
      return replace_job(run, other);
    run.source = other ? other->planned : run.asked;
    try {
      auto found = bind(run, 0, made);
      if (auto* job = std::get_if<plan_job>(&found))
        return std::move(*job);
      run.bound = std::get<bound_plan_ptr>(std::move(found));
      return std::nullopt;
    } catch (const memory_shortage& e) {
      if (!spills(run, e))
        throw;
    }
  }
}

std::variant<bound_plan_ptr, plan_job> session_plans::bind(prepared_run& run, uint32_t segment,
                                                           const plan_outcome& made) {
  const hash128 key = bound_key_of(run, segment);
  const bound_plan_ptr* found = bound_.find(key);
  if (!found)
    return bind_job(run, segment, key);
  if (!run.taken.empty() && run.source == run.asked) // what spills was made for what is left
    check_memory(*(*found)->layout, run.taken);
  run.cached &= !made.bound_plan_made;
  ++(made.bound_plan_made ? stats_.bound_plans.misses : stats_.bound_plans.hits);
  return *found;
}

// -- devices

std::vector<device_info> session_plans::usable_devices() const {
  std::vector<device_info> infos;
  for (size_t d : usable_)
    infos.push_back(devices_[d]);
  return infos;
}

bool session_plans::copies_matter() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const device_info& d) { return d.copies_beside_work; });
}

plan_options session_plans::options_for(const bindings& symbols, bool stay) const {
  const bool complete = usable_.size() == first_.size();
  return {.policy = model_->options.policy,
          .saved = complete ? model_->saved : nullptr,
          .pins = usable_pins(),
          .expected = symbols,
          .values_stay = stay,
          .plugin = model_->plugin};
}

std::vector<placement_pin> session_plans::usable_pins() const {
  std::vector<placement_pin> pins = model_->options.pins;
  std::erase_if(pins, [&](const placement_pin& p) {
    return !has_name(usable_, p.device) &&
           std::any_of(devices_.begin(), devices_.end(), [&](const device_info& d) { return d.name == p.device; });
  });
  return pins;
}

bool session_plans::allows(const device_info& device) const {
  return only_.empty() || std::find(only_.begin(), only_.end(), device.name) != only_.end();
}

void session_plans::order_usable() {
  if (only_.empty())
    return;
  const auto place = [this](size_t d) { return std::find(only_.begin(), only_.end(), devices_[d].name); };
  std::stable_sort(usable_.begin(), usable_.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
}

bool session_plans::has_name(const std::vector<size_t>& which, const std::string& name) const {
  return std::any_of(which.begin(), which.end(), [&](size_t d) { return devices_[d].name == name; });
}

template <class Predicate>
void session_plans::forget_bound_if(Predicate&& unwanted) {
  bound_.erase_if([&](const bound_plan_ptr& old) {
    const bool goes = unwanted(*old);
    if (goes)
      evicted_.push_back(old->id);
    return goes;
  });
}

void session_plans::forget_bound_plans() {
  forget_bound_if([](const bound_plan&) { return true; });
  forget_layouts();
}

void session_plans::forget_layouts() {
  layouts_ = std::make_shared<layout_buckets>(max_layouts + 2 * count_bodies(model_->source));
}

void session_plans::forget_bound_plan(uint64_t id) {
  forget_bound_if([&](const bound_plan& old) { return old.id == id; });
}

void session_plans::forget_bound_plans_of(const planned_model_ptr& planned) {
  if (planned)
    forget_bound_if([&](const bound_plan& old) { return is_of(old, *planned); });
}

void session_plans::add_device(const device_info& device) {
  devices_.push_back(device);
  if (!claimed_.empty())
    claimed_.push_back(device);
  if (!allows(device) || (model_->saved && (!has_name(first_, device.name) || has_name(usable_, device.name))))
    return;
  usable_.push_back(devices_.size() - 1);
  order_usable();
  device_set_changed();
}

void session_plans::remove_device(size_t device) {
  if (std::erase(usable_, device) == 0)
    return;
  device_set_changed();
}

void session_plans::device_set_changed() {
  // Runs in flight by plans for the devices as they were would find what has spilled there.
  instead_.erase_if([this](const replacement_ptr& old) { return !old->planned || !is_current(*old->planned); });
  devices_changed();
}

void session_plans::lower_memory(size_t device, int64_t needed) {
  if (claimed_.empty())
    claimed_ = devices_;
  devices_[device].memory_bytes = std::min(devices_[device].memory_bytes, needed) / 8 * 7;
  devices_changed();
}

void session_plans::restore_memory() {
  if (claimed_.empty())
    return;
  devices_ = std::exchange(claimed_, {});
  devices_changed();
}

void session_plans::devices_changed() {
  programs_.for_each([](specialisation& s) { s.keys = {}; });
  forget_bound_plans();
}

session_stats session_plans::stats() const {
  session_stats stats = stats_;
  stats.plans.evictions = plans_.evictions();
  stats.bound_plans.evictions = bound_.evictions();
  return stats;
}

} // namespace troupe
