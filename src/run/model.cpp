#include "run/model.hpp"

#include "base/find_from.hpp"
#include "graph/annotations.hpp"
#include "graph/bodies.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "plan/place/policy_library.hpp"
#include "plan/saved_plan.hpp"
#include "rewrite/rewrite.hpp"
#include "run/container_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <set>

namespace troupe {
namespace {

value_info info_of(const graph& g, value_id v) {
  return {g.values[v].name, g.values[v].type, g.values[v].dims};
}

std::vector<std::string> names_of(const graph& g, const std::vector<value_id>& values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (value_id v : values)
    names.push_back(g.values[v].name);
  return names;
}

/// Every input and output can be called by its name.
void check_names(const std::vector<value_info>& infos, std::string_view what) {
  std::set<std::string> seen;
  for (const value_info& info : infos)
    if (info.name.empty() || !seen.insert(info.name).second)
      fail(errc::invalid_model, "the {} '{}' has no name of its own", what, info.name);
}

const value_info* find(const std::vector<value_info>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const value_info& i) { return i.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<value_info> select_outputs(const std::vector<value_info>& all, const std::vector<std::string>& names) {
  if (names.empty())
    return all;
  std::vector<value_info> selected;
  for (const std::string& name : names) {
    const value_info* found = find(all, name);
    if (!found)
      fail(errc::invalid_argument, "the model has no output '{}'", name);
    if (std::count(names.begin(), names.end(), name) > 1)
      fail(errc::invalid_argument, "output '{}' is asked for twice", name);
    selected.push_back(*found);
  }
  return selected;
}

void check_input(const value_info& declared, const given_inputs::facts& given) {
  if (given.type == dtype::undefined)
    fail(errc::invalid_input, "input '{}' is given, but holds no tensor", declared.name);
  if (given.type != declared.type)
    fail(errc::invalid_input, "input '{}' is {}; the model takes {}", declared.name, to_string(given.type),
         to_string(declared.type));
  if (!declared.dims)
    return;
  const shape& dims = *given.dims;
  bool fits = dims.size() == declared.dims->size();
  for (size_t axis = 0; fits && axis < dims.size(); ++axis)
    fits = !(*declared.dims)[axis].is_constant() || (*declared.dims)[axis].is(dims[axis]);
  if (!fits)
    fail(errc::invalid_input, "input '{}' has shape {}; the model takes {}", declared.name, to_string(dims),
         to_string(*declared.dims));
}

given_inputs::facts facts_of(const tensor& given) {
  return {given.type(), &given.dims()};
}

given_inputs::facts facts_of(const device_tensor& given) {
  return given ? given_inputs::facts{given->type(), &given->dims()} : given_inputs::facts{};
}

given_inputs::facts facts_of(const carried_value& given) {
  return facts_of(given.handle());
}

/// Names of a loop's variables are the loop's own; `stated` are those that name no dim of the model's inputs.
void check_loop_variables(const graph& g, const bindings& stated) {
  for (const node& n : g.nodes) {
    if (!has_body(n))
      continue;
    for (const node_body& body : bodies_of(n)) {
      for (size_t i = 0; i < body.formal_inputs(); ++i)
        if (const std::string& name = body.program->values[body.program->inputs[i]].name; stated.contains(name))
          fail(errc::invalid_argument, "'{}' is a variable of {}; it cannot be bound", name, troupe::describe(n));
      check_loop_variables(*body.program, stated);
    }
  }
}

void check_stated_dims(const graph& g, bindings stated) {
  std::set<std::string> known;
  for (value_id v : g.inputs)
    if (g.values[v].dims)
      for (const dim& d : *g.values[v].dims) {
        std::vector<std::string> names;
        d.collect_symbols(names);
        known.insert(names.begin(), names.end());
      }
  for (const std::string& name : known)
    stated.erase(name);
  check_loop_variables(g, stated);
  if (!stated.empty())
    fail(errc::invalid_argument, "the model's inputs have no dim '{}'; {}", stated.begin()->first,
         known.empty() ? "all their dims are fixed" : fmt::format("they have: {}", fmt::join(known, ", ")));
}

/// Takes the inputs that are initializers out of the graph's inputs, and returns them as the file declares them.
std::map<std::string, value_info> take_defaults(graph& source) {
  std::map<std::string, value_info> defaults;
  for (value_id v : source.inputs)
    if (source.values[v].constant)
      defaults.emplace(source.values[v].name, info_of(source, v));
  keep_defaults(source);
  return defaults;
}

/// Returns what is known of a value that crosses, which has a place from then on.
crossing& cross(planned_model& p, value_id v) {
  uint32_t& place = p.crossing_of[v];
  if (place == UINT32_MAX) {
    place = static_cast<uint32_t>(p.crossings.size());
    p.crossings.emplace_back();
  }
  return p.crossings[place];
}

void find_crossings(planned_model& p) {
  const plan& compiled = *p.compiled;
  const graph& program = *compiled.program;
  p.used.assign(compiled.devices.size(), false);
  p.crossing_of.assign(program.values.size(), UINT32_MAX);
  for (const chunk& c : compiled.chunks)
    p.used[c.device] = true;
  for (value_id v : program.inputs)
    cross(p, v);
  for (const transfer& t : compiled.transfers) {
    crossing& moved = cross(p, t.value);
    moved.to_peers |= t.route == transfer_route::peer;
    if (t.to) {
      ++moved.uses;
      moved.uses_here += is_remote(compiled.devices[compiled.chunks[*t.to].device]) ? 0 : 1;
    }
  }
  const std::set<value_id> inputs(program.inputs.begin(), program.inputs.end());
  for (value_id v : program.outputs) {
    const value& output = program.values[v];
    crossing& moved = cross(p, v);
    p.constant_outputs.push_back(output.constant ? materialise(*output.constant) : tensor{});
    ++moved.uses;
    ++moved.uses_here;
    if (output.constant || inputs.contains(v) || std::exchange(moved.awaited, true))
      continue;
    p.awaited_outputs.push_back(v);
  }
}

void find_ways_of_inputs(planned_model& p) {
  const graph& program = *p.compiled->program;
  std::map<value_id, size_t> inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i)
    inputs.emplace(program.inputs[i], i);
  for (const transfer& t : p.compiled->transfers)
    if (const auto input = inputs.find(t.value); input != inputs.end() && t.to)
      p.input_uploads.push_back({input->second, p.compiled->chunks[*t.to].device});
}

void find_symbols(planned_model& p) {
  for (const dim_program& dims : p.compiled->dims)
    p.symbols.insert(dims.symbols().begin(), dims.symbols().end());
  for (const planned_model_ptr& body : p.bodies)
    p.symbols.insert(body->symbols.begin(), body->symbols.end());
}

void keep_control_constants(planned_model& p) {
  const graph& program = *p.compiled->program;
  for (const planned_body& body : p.compiled->bodies)
    for (value_id v : program.nodes[body.node].inputs)
      if (v != no_value && program.values[v].constant && !p.control_constants.contains(v))
        p.control_constants[v] = materialise(*program.values[v].constant);
}

/// What the file leaves open is compared when the run has the value.
void check_pair(const value_info& output, const value_info& input) {
  const bool types_known = output.type != dtype::undefined && input.type != dtype::undefined;
  bool fits = !types_known || output.type == input.type;
  if (fits && output.dims && input.dims) {
    fits = output.dims->size() == input.dims->size();
    for (size_t axis = 0; fits && axis < input.dims->size(); ++axis) {
      const dim &from = (*output.dims)[axis], &to = (*input.dims)[axis];
      fits = !from.is_constant() || !to.is_constant() || from.constant() == to.constant();
    }
  }
  const auto describe = [](const value_info& i) {
    return fmt::format("'{}' ({} {})", i.name, to_string(i.type), i.dims ? to_string(*i.dims) : "of any shape");
  };
  if (!fits)
    fail(errc::invalid_argument, "output {} cannot be bound to input {}", describe(output), describe(input));
}

bool states_shardings(const graph& g) {
  return g.annotations && std::ranges::any_of(g.annotations->configurations,
                                              [](const device_configuration& c) { return !c.team.empty(); });
}

} // namespace

model_ptr make_model(graph source, session_options options, double load_ms, std::string file) {
  auto m = std::make_shared<model>();
  m->file = std::move(file);
  validate(source);
  sort_topologically(source);
  resolve(source);
  slice_outputs(source, options.output_slices);
  m->defaults = take_defaults(source);
  for (value_id v : source.inputs)
    m->inputs.push_back(info_of(source, v));
  for (value_id v : source.outputs)
    m->outputs.push_back(info_of(source, v));
  check_names(m->inputs, "input");
  check_names(m->outputs, "output");
  m->input_order = name_order(names_of(source, source.inputs));
  m->outputs = select_outputs(m->outputs, options.outputs);
  check_stated_dims(source, options.dims);
  m->host_inputs = host_inputs_of(source);
  if (options.policy == placement_policy::single && options.policy_plugin.empty() && states_shardings(source))
    options.policy = placement_policy::split;
  m->source = std::move(source);
  if (!options.plan_file.empty())
    m->saved = read_saved_plan(options.plan_file);
  if (!options.policy_plugin.empty())
    m->plugin = policy_library::open(options.policy_plugin);
  if (!options.strategy_plugin.empty()) {
    m->strategy_plugin = strategy_library::open(options.strategy_plugin);
    options.strategy = strategy::plug_in;
  } else if (options.strategy == strategy::plug_in) {
    fail(errc::invalid_argument,
         "the strategy is to be a plug-in, but none is given: name its file (`session_options::strategy_plugin`)");
  }
  if (options.strategy == strategy::standard)
    options.strategy = strategy::none; // what is chosen for a queue has a model of its own
  m->options = std::move(options);
  m->load_ms = load_ms;
  return m;
}

std::optional<given_inputs::facts> given_inputs::find(const model& m, size_t i) const {
  const std::string& name = m.inputs[i].name;
  if (const auto given = tensors.find(name); given != tensors.end())
    return facts_of(given->second);
  if (const auto given = residents.find(name); given != residents.end())
    return facts_of(given->second);
  if (const device_tensor& value = carried ? carried->find(i) : nullptr)
    return facts_of(value);
  return std::nullopt;
}

tensor given_inputs::on_host(const model& m, size_t i) const {
  const std::string& name = m.inputs[i].name;
  if (const auto given = tensors.find(name); given != tensors.end())
    return given->second;
  if (const auto given = residents.find(name); given != residents.end())
    return given->second->host();
  const device_tensor value = carried ? carried->find(i) : nullptr;
  expects(value != nullptr, "an input that was checked is not there");
  return value->host();
}

std::map<std::string, tensor> given_defaults(const model& m, const given_inputs& inputs) {
  std::map<std::string, tensor> given;
  if (m.defaults.empty())
    return given;
  for (const auto& [name, value] : inputs.tensors)
    if (m.defaults.contains(name))
      given.emplace(name, value);
  for (const auto& [name, value] : inputs.residents)
    if (m.defaults.contains(name) && !given.contains(name))
      fail(errc::unsupported, "input '{}' has a default: give it in the host's memory, not on a device", name);
  return given;
}

std::vector<given_inputs::facts> check_inputs(const model& m, const given_inputs& inputs) {
  std::vector<given_inputs::facts> given(m.inputs.size());
  std::vector<bool> is_given(m.inputs.size());
  const std::string* unknown = nullptr;
  const auto add = [&](size_t i, const auto& value) {
    given[i] = facts_of(value);
    is_given[i] = true;
  };
  const auto refuse = [&](const std::string& name) {
    if (!m.defaults.contains(name))
      unknown = &name;
  };
  if (inputs.carried)
    inputs.carried->for_each_given(add);
  m.input_order.match(inputs.residents, add, refuse);
  m.input_order.match(inputs.tensors, add, refuse);
  for (size_t i = 0; i < m.inputs.size(); ++i) {
    const value_info& declared = m.inputs[i];
    if (!is_given[i])
      fail(errc::invalid_input, "input '{}' is missing", declared.name);
    check_input(declared, given[i]);
    if (is_container(declared.type))
      check_container(m.source.values[m.source.inputs[i]], inputs.on_host(m, i));
  }
  if (unknown)
    fail(errc::invalid_input, "the model has no input '{}'", *unknown);
  for (const auto& [name, value] : given_defaults(m, inputs))
    check_input(m.defaults.at(name), facts_of(value));
  return given;
}

void check_kept(const model& m, const std::vector<std::string>& keep) {
  std::vector<bool> seen(m.outputs.size());
  size_t i = 0;
  for (const std::string& name : keep) {
    i = find_from(m.outputs, i, [&](const value_info& output) { return output.name == name; });
    if (i == seen.size())
      fail(errc::invalid_argument, "output '{}' cannot be kept: the session has no such output", name);
    if (seen[i])
      fail(errc::invalid_argument, "output '{}' is to be kept twice", name);
    seen[i++] = true;
  }
}

std::vector<carried_pair> check_bindings(const model& m, const std::vector<output_binding>& bindings) {
  std::set<std::string> outputs, inputs;
  std::vector<carried_pair> pairs;
  for (const output_binding& b : bindings) {
    const value_info *output = find(m.outputs, b.output), *input = find(m.inputs, b.input);
    if (!output)
      fail(errc::invalid_argument, "output '{}' cannot be bound: the session has no such output", b.output);
    if (!input)
      fail(errc::invalid_argument, "input '{}' cannot be bound: the model has no such input", b.input);
    if (!outputs.insert(b.output).second)
      fail(errc::invalid_argument, "output '{}' is bound twice", b.output);
    if (!inputs.insert(b.input).second)
      fail(errc::invalid_argument, "input '{}' is bound twice", b.input);
    check_pair(*output, *input);
    pairs.push_back({static_cast<size_t>(output - m.outputs.data()), static_cast<size_t>(input - m.inputs.data())});
  }
  return pairs;
}

std::optional<device_index> index_in(const planned_model& p, size_t device) {
  for (device_index d = 0; d < p.devices.size(); ++d)
    if (p.devices[d] == device && p.used[d])
      return d;
  return std::nullopt;
}

bool runs_on(const planned_model& p, size_t device) {
  return index_in(p, device) || std::any_of(p.bodies.begin(), p.bodies.end(),
                                            [&](const planned_model_ptr& body) { return runs_on(*body, device); });
}

planned_model_ptr describe_plan(std::shared_ptr<const plan> compiled, const std::vector<size_t>& devices,
                                std::vector<std::string> output_names, std::vector<size_t> program_input) {
  static std::atomic<uint64_t> last{0};
  auto p = std::make_shared<planned_model>();
  p->serial = ++last;
  p->compiled = std::move(compiled);
  p->input_order = name_order(names_of(*p->compiled->program, p->compiled->program->inputs));
  p->output_names = std::move(output_names);
  p->program_input = std::move(program_input);
  p->devices = devices;
  for (const planned_body& body : p->compiled->bodies)
    p->bodies.push_back(describe_plan(body.compiled, devices));
  find_crossings(*p);
  find_ways_of_inputs(*p);
  find_symbols(*p);
  keep_control_constants(*p);
  return p;
}

} // namespace troupe
