#include "run/session_plans.hpp"

#include "graph/bodies.hpp"
#include "graph/element_symbols.hpp"
#include "plan/bind_inputs.hpp"
#include "plan/fit_memory.hpp"
#include "plan/plan_key.hpp"
#include "plan/policies.hpp"
#include "rewrite/rewrite.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// How many specialisations, plans, bound plans and layouts a session keeps; of bound plans and layouts two more for each body.
constexpr size_t max_specialisations = 8;
constexpr size_t max_plans = 2 * max_specialisations; // those for the devices as they are, and as they were
constexpr size_t max_bound_plans = 64;
constexpr size_t max_layouts = 16;

using steady = std::chrono::steady_clock;

double milliseconds_since(steady::time_point start) {
  return std::chrono::duration<double, std::milli>(steady::now() - start).count();
}

/// Hashes type, dims and elements of a host input: two runs share a specialisation only if all are equal.
void add_content(hasher& h, const tensor& t) {
  h.add(t.type());
  h.add(std::span<const int64_t>(t.dims()));
  if (t.type() == dtype::string)
    for (const std::string& text : t.values<std::string>())
      h.add(text);
  else
    h.add_bytes(t.data(), static_cast<size_t>(t.bytes()));
}

/// Fresh symbols for an input whose rank the file does not state.
symbolic_shape open_dims(const std::string& input, size_t rank) {
  symbolic_shape dims;
  for (size_t axis = 0; axis < rank; ++axis)
    dims.push_back(dim::symbol(fmt::format("{}.{}", input, axis)));
  return dims;
}

/// Returns the symbols' values that the inputs' dims and the session's options state.
bindings read_symbols(const graph& program, const given_inputs& inputs, const bindings& stated) {
  std::vector<const shape*> shapes;
  for (value_id v : program.inputs) {
    const auto given = inputs.find(program.values[v].name);
    shapes.push_back(given ? given->dims : nullptr);
  }
  return bind_inputs(program, shapes, stated);
}

/// Returns whether `bound` is of `planned` or of one of its bodies.
bool is_of(const bound_plan& bound, const planned_model& planned) {
  return bound.source == planned.compiled ||
         std::any_of(planned.bodies.begin(), planned.bodies.end(),
                     [&](const planned_model_ptr& body) { return is_of(bound, *body); });
}

} // namespace

session_plans::session_plans(model_ptr m, std::vector<device_info> devices)
    : model_(std::move(m)), devices_(std::move(devices)), specialisations_(max_specialisations), plans_(max_plans),
      bound_(max_bound_plans + 2 * count_bodies(model_->source)),
      layouts_(max_layouts + 2 * count_bodies(model_->source)), instead_(max_bound_plans) {
  for (size_t d = 0; d < devices_.size(); ++d)
    usable_.push_back(d);
  stats_.load_ms = model_->load_ms;
}

void session_plans::prepare_ahead() {
  const bool ranks_known =
      std::all_of(model_->inputs.begin(), model_->inputs.end(), [](const value_info& i) { return i.dims.has_value(); });
  if (!ranks_known || !model_->host_inputs.empty())
    return;
  specialisation& s = specialise({{}, {}});
  s.expected = model_->options.dims;
  // Where nothing is decided by predicted times, the first run's dims change nothing.
  s.draft = row_of(model_->options.policy).uses_cost || copies_matter();
  bool cached = false;
  plan_of(s, false, &cached);
}

session_plans::specialisation& session_plans::specialise(const given_inputs& inputs) {
  hasher h;
  for (const value_info& input : model_->inputs)
    if (!input.dims)
      h.add(inputs.find(input.name)->dims->size());
  for (const std::string& name : model_->host_inputs)
    add_content(h, inputs.tensors.at(name));
  const hash128 key = h.digest();
  if (specialisation* found = specialisations_.find(key))
    return *found;
  const auto start = steady::now();
  rewrite_options options{
      .fuse = model_->options.fuse, .precision = model_->options.precision, .outputs = model_->options.outputs};
  for (const value_info& input : model_->inputs)
    if (!input.dims)
      options.input_dims[input.name] = open_dims(input.name, inputs.find(input.name)->dims->size());
  for (const std::string& name : model_->host_inputs)
    options.constant_inputs[name] = inputs.tensors.at(name);
  auto program = std::make_shared<const graph>(rewrite(model_->source, options));
  stats_.rewrite_ms += milliseconds_since(start);
  const hash128 hash = hash_of(*program);
  return specialisations_.insert(key, {.program = std::move(program), .hash = hash});
}

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
  // A saved plan is for all devices.
  const bool complete = usable_.size() == devices_.size();
  return {.policy = model_->options.policy,
          .saved = complete ? model_->saved : nullptr,
          .pins = usable_pins(),
          .expected = symbols,
          .values_stay = stay};
}

std::shared_ptr<planned_model> session_plans::describe_body(std::shared_ptr<const plan> compiled,
                                                            const std::vector<size_t>& devices) {
  auto result = std::make_shared<planned_model>();
  result->serial = ++plans_made_;
  result->compiled = std::move(compiled);
  result->devices = devices;
  for (const planned_body& body : result->compiled->bodies)
    result->bodies.push_back(describe_body(body.compiled, devices));
  describe_plan(*result);
  return result;
}

planned_model_ptr session_plans::describe(std::shared_ptr<const plan> compiled) {
  std::shared_ptr<planned_model> result = describe_body(std::move(compiled), usable_);
  for (const value_info& output : model_->outputs)
    result->output_names.push_back(output.name);
  return result;
}

planned_model_ptr session_plans::plan_of(specialisation& s, bool stay, bool* cached) {
  std::optional<hash128>& key = s.keys[stay];
  if (!key)
    key = plan_key(s.hash, usable_devices(), options_for(s.expected, stay));
  const planned_model_ptr* found = plans_.find(*key);
  *cached = found != nullptr;
  if (found)
    return *found;
  const auto start = steady::now();
  planned_model_ptr made = describe(make_plan(s.program, usable_devices(), options_for(s.expected, stay)));
  plans_.insert(*key, made, [this](const planned_model_ptr& old) { forget_bound_plans_of(*old); });
  stats_.plan_ms += milliseconds_since(start);
  return made;
}

void session_plans::bind_first(prepared_run& run) {
  hasher h;
  h.add(run.asked->compiled->key);
  for (const auto& [name, value] : run.symbols)
    h.add(value); // a plan's symbols are always the same
  for (int64_t bytes : run.taken)
    h.add(bytes);
  run.key = h.digest();
  const planned_model_ptr* other = instead_.size() > 0 ? instead_.find(run.key) : nullptr;
  run.source = other ? *other : run.asked;
  try {
    run.bound = bind(run, 0);
  } catch (const memory_shortage& e) {
    if (!is_current(*run.asked))
      throw;
    spill(run, e);
    run.source = *instead_.find(run.key);
    run.bound = bind(run, 0);
  }
}

void session_plans::spill(const prepared_run& run, const memory_shortage& why) {
  const auto start = steady::now();
  run_instead(run, plan_that_fits(*run.asked->compiled, run.symbols, run.taken, why));
  stats_.plan_ms += milliseconds_since(start);
}

bool session_plans::plan_exactly(const prepared_run& run) {
  const planned_model_ptr* made = instead_.find(run.key);
  if (!is_current(*run.asked) || (made && *made != run.source))
    return true; // for the devices as they are; for another run with this binding
  const plan& refused = *run.source->compiled;
  if (refused.options.saved || refused.options.expected == run.symbols)
    return false;
  const auto start = steady::now();
  plan_options options = refused.options;
  options.expected = run.symbols;
  run_instead(run, make_plan(refused.given, real_devices(refused), options));
  stats_.plan_ms += milliseconds_since(start);
  return true;
}

void session_plans::run_instead(const prepared_run& run, std::shared_ptr<const plan> made) {
  auto described = describe_body(std::move(made), run.asked->devices);
  described->output_names = run.asked->output_names;
  instead_.insert(run.key, std::move(described), [this](const planned_model_ptr& old) { forget_bound_plans_of(*old); });
}

std::vector<placement_pin> session_plans::usable_pins() const {
  std::vector<placement_pin> pins = model_->options.pins;
  for (size_t d = 0; d < devices_.size(); ++d)
    if (std::find(usable_.begin(), usable_.end(), d) == usable_.end())
      std::erase_if(pins, [&](const placement_pin& p) { return p.device == devices_[d].name; });
  return pins;
}

prepared_run session_plans::prepare_body(const planned_model_ptr& body, std::span<const tensor> inputs,
                                         const bindings& around, std::vector<int64_t> taken) {
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
      .symbols = bind_inputs(program, shapes, given), .cached = true, .taken = std::move(taken), .asked = body};
  bind_first(run);
  return run;
}

void session_plans::check(const given_inputs& inputs, const std::vector<std::string>& keep) const {
  check_inputs(*model_, inputs);
  check_kept(*model_, keep);
}

prepared_run session_plans::prepare(const given_inputs& inputs) {
  check_inputs(*model_, inputs);
  prepared_run run;
  specialisation& s = specialise(inputs);
  run.symbols = read_symbols(*s.program, inputs, model_->options.dims);
  if (std::exchange(s.draft, false)) {
    s.expected = run.symbols;
    s.keys = {};
  }
  const bool stay = copies_matter() && !inputs.residents.empty();
  run.asked = plan_of(s, stay, &run.cached);
  bind_first(run);
  return run;
}

bound_plan_ptr session_plans::bind(prepared_run& run, uint32_t segment) {
  hasher h;
  h.add(run.source->serial);
  h.add(segment);
  for (const auto& [name, value] : run.symbols)
    h.add(value); // a plan's symbols are always the same
  const hash128 key = h.digest();
  const bound_plan_ptr* found = bound_.find(key);
  if (!found) {
    run.cached = false;
    const auto start = steady::now();
    found = &bound_.insert(key, layouts_.bind(run.source->compiled, segment, run.symbols),
                           [this](const bound_plan_ptr& old) { evicted_.push_back(old->id); });
    stats_.plan_ms += milliseconds_since(start);
  }
  if (!run.taken.empty() && run.source == run.asked) // what spills was made for what is left
    check_memory(*(*found)->layout, run.taken);
  return *found;
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
  layouts_.clear();
}

void session_plans::forget_bound_plans(std::span<const uint64_t> ids) {
  forget_bound_if([&](const bound_plan& old) { return std::find(ids.begin(), ids.end(), old.id) != ids.end(); });
}

void session_plans::forget_bound_plans_of(const planned_model& planned) {
  forget_bound_if([&](const bound_plan& old) { return is_of(old, planned); });
}

void session_plans::remove_device(size_t device) {
  if (std::erase(usable_, device) == 0)
    return;
  // Runs in flight by plans for the device would find what has spilled to it.
  instead_.erase_if([this](const planned_model_ptr& old) { return !is_current(*old); });
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
  specialisations_.for_each([](specialisation& s) { s.keys = {}; });
  forget_bound_plans();
}

session_stats session_plans::stats() const {
  session_stats stats = stats_;
  stats.plans = plans_.stats();
  stats.bound_plans = bound_.stats();
  stats.layouts = layouts_.stats();
  return stats;
}

} // namespace troupe
