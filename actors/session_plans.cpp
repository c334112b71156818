#include "actors/session_plans.hpp"

#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "rewrite/rewrite.hpp"

#include <algorithm>

namespace troupe::actors {
namespace {

/// How many specialisations and bound plans a session keeps.
constexpr size_t max_specialisations = 8;
constexpr size_t max_bound_plans = 64;

using steady = std::chrono::steady_clock;

double milliseconds_since(steady::time_point start) {
  return std::chrono::duration<double, std::milli>(steady::now() - start).count();
}

void append(std::string& key, const void* data, size_t size) {
  key.append(static_cast<const char*>(data), size);
}

void append(std::string& key, int64_t number) {
  append(key, &number, sizeof number);
}

/// Appends type, dims and elements of a host input: two runs share a specialisation only if all are equal.
void append_content(std::string& key, const tensor& t) {
  append(key, static_cast<int64_t>(t.type()));
  append(key, static_cast<int64_t>(t.dims().size()));
  for (int64_t d : t.dims())
    append(key, d);
  if (t.type() == dtype::string)
    for (const std::string& text : t.values<std::string>()) {
      append(key, static_cast<int64_t>(text.size()));
      key += text;
    }
  else
    append(key, t.data(), static_cast<size_t>(t.bytes()));
}

/// Fresh symbols for an input whose rank the file does not state.
symbolic_shape open_dims(const std::string& input, size_t rank) {
  symbolic_shape dims;
  for (size_t axis = 0; axis < rank; ++axis)
    dims.push_back(dim::symbol(fmt::format("{}.{}", input, axis)));
  return dims;
}

/// Returns the symbols' values that the inputs' dims and the session's options state.
bindings read_symbols(const graph& program, const named_tensors& inputs, const bindings& stated) {
  bindings symbols;
  const auto bind = [&](const std::string& name, int64_t value, const std::string& where) {
    const auto [it, is_new] = symbols.emplace(name, value);
    if (!is_new && it->second != value)
      fail(errc::invalid_input, "{}: the dim '{}' is {} here, but {} elsewhere", where, name, value, it->second);
  };
  for (value_id v : program.inputs) {
    const value& info = program.values[v];
    const auto given = inputs.find(info.name);
    if (given == inputs.end() || !info.dims)
      continue;
    for (size_t axis = 0; axis < info.dims->size(); ++axis)
      if (const std::string name = (*info.dims)[axis].symbol_name(); !name.empty())
        bind(name, given->second.dims().at(axis), fmt::format("input '{}'", info.name));
  }
  for (const auto& [name, value] : stated)
    bind(name, value, "session_options::dims");
  return symbols;
}

} // namespace

session_plans::session_plans(model_ptr m, std::vector<device_info> devices)
    : model_(std::move(m)), devices_(std::move(devices)) {
  for (size_t d = 0; d < devices_.size(); ++d)
    usable_.push_back(d);
  stats_.load_ms = model_->load_ms;
}

void session_plans::prepare_ahead() {
  const bool ranks_known =
      std::all_of(model_->inputs.begin(), model_->inputs.end(), [](const value_info& i) { return i.dims.has_value(); });
  if (!ranks_known || !model_->host_inputs.empty())
    return;
  specialisation& s = specialise({});
  s.planned = make_planned(s.program);
}

session_plans::specialisation& session_plans::specialise(const named_tensors& inputs) {
  std::string key;
  for (const value_info& input : model_->inputs)
    if (!input.dims)
      append(key, static_cast<int64_t>(inputs.at(input.name).dims().size()));
  for (const std::string& name : model_->host_inputs)
    append_content(key, inputs.at(name));
  const auto found = std::find_if(specialisations_.begin(), specialisations_.end(),
                                  [&](const specialisation& s) { return s.key == key; });
  if (found != specialisations_.end()) {
    specialisations_.splice(specialisations_.begin(), specialisations_, found);
    return specialisations_.front();
  }
  const auto start = steady::now();
  rewrite_options options{.fuse = model_->options.fuse, .outputs = model_->options.outputs};
  for (const value_info& input : model_->inputs)
    if (!input.dims)
      options.input_dims[input.name] = open_dims(input.name, inputs.at(input.name).dims().size());
  for (const std::string& name : model_->host_inputs)
    options.constant_inputs[name] = inputs.at(name);
  auto program = std::make_shared<const graph>(rewrite(model_->source, options));
  specialisations_.push_front({std::move(key), std::move(program), nullptr});
  if (specialisations_.size() > max_specialisations)
    specialisations_.pop_back();
  stats_.rewrite_ms += milliseconds_since(start);
  return specialisations_.front();
}

planned_model_ptr session_plans::make_planned(const std::shared_ptr<const graph>& program) {
  const auto start = steady::now();
  auto result = std::make_shared<planned_model>();
  static std::atomic<uint64_t> next_serial{1};
  result->serial = next_serial++;
  std::vector<device_info> infos;
  for (size_t d : usable_)
    infos.push_back(devices_[d]);
  result->compiled = make_plan(program, std::move(infos), {.policy = model_->options.policy});
  result->devices = usable_;
  describe_plan(*result);
  for (const value_info& output : model_->outputs)
    result->output_names.push_back(output.name);
  stats_.plan_ms += milliseconds_since(start);
  return result;
}

prepared_run session_plans::prepare(const named_tensors& inputs) {
  check_inputs(*model_, inputs);
  prepared_run run;
  specialisation& s = specialise(inputs);
  run.symbols = read_symbols(*s.program, inputs, model_->options.dims);
  run.cached = s.planned != nullptr;
  if (!s.planned)
    s.planned = make_planned(s.program);
  run.source = s.planned;
  return run;
}

bound_plan_ptr session_plans::bind(const planned_model_ptr& planned, uint32_t segment, const bindings& symbols,
                                   bool* cached) {
  std::string key;
  append(key, static_cast<int64_t>(planned->serial));
  append(key, segment);
  for (const auto& [name, value] : symbols)
    append(key, value);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    ++stats_.plan_hits;
    bound_.splice(bound_.begin(), bound_, found->second);
    return bound_.front().bound;
  }
  ++stats_.plan_misses;
  if (cached)
    *cached = false;
  const auto start = steady::now();
  bound_plan_ptr bound = bind_segment(planned->compiled, segment, symbols);
  bound_.push_front({key, bound});
  by_key_.emplace(std::move(key), bound_.begin());
  if (bound_.size() > max_bound_plans) {
    ++stats_.plan_evictions;
    erase(std::prev(bound_.end()));
  }
  stats_.plan_ms += milliseconds_since(start);
  return bound;
}

void session_plans::erase(std::list<bound_entry>::iterator entry) {
  evicted_.push_back(entry->bound->id);
  by_key_.erase(entry->key);
  bound_.erase(entry);
}

void session_plans::remove_device(size_t device) {
  if (std::erase(usable_, device) == 0)
    return;
  for (specialisation& s : specialisations_)
    s.planned = nullptr;
  while (!bound_.empty())
    erase(bound_.begin());
}

void session_plans::forget(uint64_t bound_plan) {
  const auto found =
      std::find_if(bound_.begin(), bound_.end(), [&](const bound_entry& e) { return e.bound->id == bound_plan; });
  if (found != bound_.end())
    erase(found);
}

} // namespace troupe::actors
