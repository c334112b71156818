#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

#include <set>

namespace troupe {
namespace {

std::map<std::string, value_id> by_name(const graph& g, const std::vector<value_id>& ids) {
  std::map<std::string, value_id> found;
  for (value_id v : ids)
    found.emplace(g.values[v].name, v);
  return found;
}

void check_fits(const value& declared, const tensor& bytes) {
  if (declared.type != dtype::undefined && declared.type != bytes.type())
    fail(errc::invalid_input, "input '{}' must have element type {}, not {}", declared.name, to_string(declared.type),
         to_string(bytes.type()));
  if (!declared.dims)
    return;
  bool fits = declared.dims->size() == bytes.dims().size();
  for (size_t i = 0; fits && i < bytes.dims().size(); ++i)
    fits = !(*declared.dims)[i].is_constant() || (*declared.dims)[i].is(bytes.dims()[i]);
  if (!fits)
    fail(errc::invalid_input, "input '{}' must have shape {}, not {}", declared.name, to_string(*declared.dims),
         to_string(bytes.dims()));
}

/// Returns the initializer of that name, null if there is none.
value* find_default(graph& g, const std::string& name) {
  const auto found = std::ranges::find_if(g.values, [&](const value& v) { return v.constant && v.name == name; });
  return found == g.values.end() ? nullptr : &*found;
}

void select_outputs(graph& g, const std::vector<std::string>& wanted) {
  if (wanted.empty())
    return;
  const auto outputs = by_name(g, g.outputs);
  std::vector<value_id> selected;
  for (const std::string& name : wanted) {
    const auto it = outputs.find(name);
    if (it == outputs.end())
      fail(errc::invalid_argument, "the model has no output '{}'", name);
    selected.push_back(it->second);
  }
  g.outputs = std::move(selected);
}

} // namespace

void keep_defaults(graph& g) {
  for (value_id v : g.inputs)
    if (const weight_ptr& initial = g.values[v].constant)
      g.values[v].dims = to_symbolic(initial->dims);
  std::erase_if(g.inputs, [&](value_id v) { return g.values[v].constant != nullptr; });
}

void specialise(graph& g, const rewrite_options& options) {
  select_outputs(g, options.outputs);
  const auto inputs = by_name(g, g.inputs);
  const auto find = [&](const std::string& name) {
    const auto it = inputs.find(name);
    if (it == inputs.end())
      fail(errc::invalid_argument, "the model has no input '{}'", name);
    return it->second;
  };
  for (const auto& [name, dims] : options.input_dims)
    g.values[find(name)].dims = dims;
  for (const auto& [name, elements] : options.input_elements)
    g.values[find(name)].elements = elements;
  keep_defaults(g);
  for (const auto& [name, bytes] : options.constant_inputs) {
    value* const initial = find_default(g, name);
    value& v = initial ? *initial : g.values[find(name)];
    if (!initial)
      check_fits(v, bytes);
    v.type = bytes.type();
    v.dims = to_symbolic(bytes.dims());
    v.constant = weight::from_tensor(bytes);
  }
  std::erase_if(g.inputs, [&](value_id v) { return g.values[v].constant != nullptr; });
}

void finish_outputs(graph& g) {
  const adjacency a = adjacency_of(g);
  std::set<value_id> taken;
  for (value_id& output : g.outputs) {
    if (a.producer[output] >= 0 && taken.insert(output).second)
      continue;
    value copy = g.values[output];
    copy.constant = nullptr;
    copy.known.reset();
    const bool is_input = std::find(g.inputs.begin(), g.inputs.end(), output) != g.inputs.end();
    if (!is_input && a.producer[output] < 0)
      g.values[output].name += "/value";
    const value_id source = std::exchange(output, g.add_value(copy));
    g.add_node(make_node(copy.name + "/identity", "", "Identity", {source}, {output}));
  }
  remove_dead(g);
}

} // namespace troupe
