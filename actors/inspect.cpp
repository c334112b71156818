#include "troupe/inspect.hpp"

#include "actors/engine_access.hpp"
#include "actors/engine_state.hpp"
#include "ops/op.hpp"
#include "plan/place/policies.hpp"
#include "plan/place/policy_library.hpp"
#include "plan/show/idle_devices.hpp"

#include <algorithm>
#include <map>

namespace troupe {
namespace {

bool is_control_flow(const node& n) {
  return n.domain.empty() && (n.op_type == "If" || n.op_type == "Loop" || n.op_type == "Scan");
}

/// Returns by value whether its bytes are made anew from the graph's inputs. A view has the bytes of its first operand.
std::vector<bool> made_by_runs(const graph& program) {
  std::vector<bool> made(program.values.size());
  for (value_id v : program.inputs)
    made[v] = true;
  for (const node& n : program.nodes) {
    const bool view = n.def && n.def->alias == aliasing::view;
    const auto operands = std::span(n.inputs).first(view ? std::min<size_t>(1, n.inputs.size()) : n.inputs.size());
    const bool any =
        std::any_of(operands.begin(), operands.end(), [&](value_id v) { return v != no_value && made[v]; });
    for (value_id v : n.outputs)
      if (v != no_value)
        made[v] = any;
  }
  return made;
}

bool contradicts(const symbolic_shape& stated, const symbolic_shape& inferred) {
  return !std::ranges::equal(stated, inferred, [](const dim& a, const dim& b) {
    return !a.is_constant() || !b.is_constant() || a.constant() == b.constant();
  });
}

/// Adds a line for each output whose declared shape is not the one that was inferred.
void add_contradictions(const session& s, const graph& program, std::vector<std::string>& lines) {
  const std::vector<value_info>& outputs = s.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& stated = outputs[i].dims;
    const auto& inferred = program.values[program.outputs.at(i)].dims;
    if (stated && inferred && contradicts(*stated, *inferred))
      lines.push_back(fmt::format("output '{}' has shape {}, though the model declares {}", outputs[i].name,
                                  to_string(*inferred), to_string(*stated)));
  }
}

std::vector<std::string> warnings_of_replicas(const session& s, const named_tensors& inputs) {
  const model_ptr& m = engine_access::shared_model_of(s);
  const named_device_tensors none;
  std::vector<replica_set> sets;
  for (const actors::replica& r : engine_access::replicas_of(s))
    sets.push_back(r.devices);
  const devices_of_session devices = actors::devices_at_hand(engine_access::runtime(s)).for_session(m->options);
  const std::string slower = slower_than_one(m, devices, sets, {inputs, none});
  return slower.empty() ? std::vector<std::string>() : std::vector<std::string>{slower};
}

bool is_array(const tensor& t) {
  return t.defined() && !is_container(t.type());
}

bool is_empty(const tensor& t) {
  return is_array(t) && t.size() == 0;
}

/// Returns the name of a dim that an input declares; empty if it has none, or the input is not of that rank.
std::string name_at(const value_info& input, const tensor& t, size_t axis) {
  return input.dims && input.dims->size() == t.dims().size() ? (*input.dims)[axis].symbol_name() : "";
}

/// Returns the sizes of names in inputs with elements; 0 for a name with several.
std::map<std::string, int64_t> sizes_in(const named_tensors& inputs, const std::vector<value_info>& declared) {
  std::map<std::string, int64_t> sizes;
  for (const value_info& input : declared) {
    const auto given = inputs.find(input.name);
    if (given == inputs.end() || !is_array(given->second) || is_empty(given->second))
      continue;
    const tensor& t = given->second;
    for (size_t axis = 0; axis < t.dims().size(); ++axis)
      if (const std::string name = name_at(input, t, axis); !name.empty())
        if (const auto [at, added] = sizes.emplace(name, t.dims()[axis]); !added && at->second != t.dims()[axis])
          at->second = 0;
  }
  return sizes;
}

void settle_empty(named_tensors& inputs, const std::vector<value_info>& declared) {
  const std::map<std::string, int64_t> sizes = sizes_in(inputs, declared);
  for (const value_info& input : declared) {
    const auto given = inputs.find(input.name);
    if (given == inputs.end() || !is_empty(given->second))
      continue;
    shape dims = given->second.dims();
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (const auto size = sizes.find(name_at(input, given->second, axis)); dims[axis] == 0 && size != sizes.end())
        dims[axis] = size->second;
    if (dims != given->second.dims() && std::ranges::find(dims, 0) != dims.end())
      given->second = tensor(given->second.type(), dims);
  }
}

} // namespace

std::vector<std::string> warnings_of(const session& s, const named_tensors& inputs) {
  const model& m = engine_access::model_of(s);
  if (m.options.strategy == strategy::pipeline || m.options.strategy == strategy::model_parallel)
    return warnings_of_replicas(s, inputs);
  if (m.options.strategy != strategy::none)
    return {};
  const std::shared_ptr<const plan> planned = plan_of(s, inputs);
  std::vector<std::string> lines;
  add_contradictions(s, *planned->program, lines);
  const std::string policy = m.plugin ? m.plugin->name() : std::string(to_string(m.options.policy));
  const asked_devices asked{engine_access::runtime(s).options().devices, m.options.plan_file, policy};
  for (std::string& line : why_idle(asked, *planned))
    lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> shared_outputs(const session& s, const named_tensors& inputs) {
  std::vector<std::string> names;
  for (const value_info& output : s.outputs())
    names.push_back(output.name);
  const std::shared_ptr<const plan> planned = plan_of(s, inputs);
  const graph& program = *planned->program;
  if (std::any_of(program.nodes.begin(), program.nodes.end(), is_control_flow))
    return names;
  const std::vector<bool> made = made_by_runs(program);
  std::vector<std::string> shared;
  for (size_t i = 0; i < program.outputs.size(); ++i)
    if (!made[program.outputs[i]])
      shared.push_back(names.at(i));
  return shared;
}

std::vector<value_info> optional_inputs(const session& s) {
  std::vector<value_info> all;
  for (const auto& [name, info] : engine_access::model_of(s).defaults)
    all.push_back(info);
  return all;
}

void take_loosely(named_tensors& inputs, const std::vector<value_info>& declared) {
  bool some_empty = false;
  for (const value_info& input : declared) {
    const auto given = inputs.find(input.name);
    if (given == inputs.end()) {
      if (is_optional(input.type))
        inputs.emplace(input.name, tensor::optional(element_of(input.type), {}));
      continue;
    }
    tensor& t = given->second;
    some_empty = some_empty || is_empty(t);
    if (input.dims && input.dims->empty() && is_array(t) && t.size() == 1 && !t.dims().empty())
      t = t.reshaped({});
  }
  if (some_empty)
    settle_empty(inputs, declared);
}

} // namespace troupe
