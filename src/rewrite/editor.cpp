#include "rewrite/editor.hpp"

#include "ops/registry.hpp"

namespace troupe {

bool defines_symbols(const graph& g, const node& n) {
  for (value_id v : n.outputs) {
    if (v == no_value || !g.values[v].dims)
      continue;
    for (const dim& d : *g.values[v].dims)
      if (!d.is_constant() && d.symbol_name().starts_with(fmt::format("#{}.", g.values[v].name)))
        return true;
  }
  return false;
}

value_id graph_editor::add_result(const std::string& name) {
  return add_value({.name = name});
}

value_id graph_editor::add_constant(const std::string& name, tensor bytes) {
  return add_constant(name, weight::from_tensor(std::move(bytes)));
}

value_id graph_editor::add_constant(const std::string& name, weight_ptr recipe) {
  value v;
  v.name = name;
  v.type = recipe->type;
  v.dims = to_symbolic(recipe->dims);
  v.constant = std::move(recipe);
  return add_value(std::move(v));
}

value_id graph_editor::add_known(const std::string& name, const symbolic_shape& elements) {
  if (is_constant(elements))
    return add_constant(name, tensor::of<int64_t>({static_cast<int64_t>(elements.size())}, constants(elements)));
  value v;
  v.name = name;
  v.type = dtype::int64;
  v.dims = symbolic_shape{static_cast<int64_t>(elements.size())};
  v.known = elements;
  return add_value(std::move(v));
}

namespace {

/// Returns what inference says of the outputs of `n`, which stay what they are.
std::vector<value> inferred_outputs(graph& g, node& n) {
  std::vector<value> outputs;
  for (const value_id v : n.outputs)
    outputs.push_back(v == no_value ? value{} : std::exchange(g.values[v], {.name = g.values[v].name}));
  const auto put_back = [&] {
    for (size_t i = 0; i < outputs.size(); ++i)
      if (n.outputs[i] != no_value)
        std::swap(g.values[n.outputs[i]], outputs[i]);
  };
  try {
    infer_node(g, n);
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
  return outputs;
}

} // namespace

/// Infers `n`. Returns false if it makes another value than one of its outputs has been until now.
bool graph_editor::infer(node& n) {
  std::vector<value> made = inferred_outputs(graph_, n);
  for (size_t i = 0; i < made.size(); ++i) {
    if (n.outputs[i] == no_value)
      continue;
    value& output = graph_.values[n.outputs[i]];
    expects(!output.constant, "a node that makes a constant");
    if (output.type != dtype::undefined &&
        (output.type != made[i].type || output.dims != made[i].dims || output.elements != made[i].elements))
      return false;
  }
  for (size_t i = 0; i < made.size(); ++i)
    if (n.outputs[i] != no_value && graph_.values[n.outputs[i]].type == dtype::undefined)
      graph_.values[n.outputs[i]] = std::move(made[i]);
  return true;
}

node_id graph_editor::add_node(node n) {
  expects(infer(n), "a node whose outputs are other values than it makes");
  appended_ = true;
  return append(std::move(n));
}

/// Whether `replacement` may make values that others made until now.
bool graph_editor::takes_over(node& replacement) {
  try {
    return infer(replacement);
  } catch (const error& e) {
    if (e.code() == errc::internal)
      throw;
    return false; // the operator is not for such operands
  }
}

bool graph_editor::replace(node_id n, node replacement) {
  if (!takes_over(replacement))
    return false;
  const node old = std::exchange(graph_.nodes[n], std::move(replacement));
  drop_outputs(n, old);
  link(n);
  drop_inputs(old);
  erase_unread();
  return true;
}

bool graph_editor::replace_all(std::span<const node_id> old, node replacement) {
  if (!takes_over(replacement))
    return false;
  for (const node_id n : old) {
    alive_[n] = 0;
    drop_outputs(n, graph_.nodes[n]);
  }
  appended_ = true;
  append(std::move(replacement));
  for (const node_id n : old)
    drop_inputs(graph_.nodes[n]);
  erase_unread();
  return true;
}

void graph_editor::set_input(node_id n, size_t slot, value_id v) {
  const value_id old = std::exchange(graph_.nodes[n].inputs[slot], v);
  add_use(v, n);
  drop_use(old);
  erase_unread();
}

void graph_editor::replace_uses(value_id from, value_id to) {
  for (node_id n : consumers(from))
    for (value_id& input : graph_.nodes[n].inputs)
      if (input == from) {
        input = to;
        add_use(to, n);
        drop_use(from);
      }
  readers_[from].clear();
  erase_unread();
}

bool graph_editor::bypass(node_id n, value_id to) {
  const value_id out = graph_.nodes[n].outputs[0];
  if (is_output_[out]) {
    const node_id source = producer(to);
    if (source < 0 || is_output_[to] || defines_symbols(graph_, graph_.nodes[source]))
      return false;
    // The producer of `to` writes the graph output; readers of `to` follow.
    alive_[n] = 0;
    --uses_[to];
    std::replace(graph_.nodes[source].outputs.begin(), graph_.nodes[source].outputs.end(), to, out);
    producer_[out] = source;
    producer_[to] = -1;
    replace_uses(to, out);
    graph_.values[out].dims = graph_.values[to].dims;
    graph_.values[out].known = graph_.values[to].known;
    return true;
  }
  replace_uses(out, to);
  if (alive_[n])
    erase(n);
  return true;
}

void graph_editor::erase(node_id n) {
  if (alive_[n])
    remove(n);
  erase_unread();
}

void graph_editor::remove(node_id n) {
  alive_[n] = 0;
  drop_outputs(n, graph_.nodes[n]);
  drop_inputs(graph_.nodes[n]);
}

bool graph_editor::unread(node_id n) const {
  const auto& outputs = graph_.nodes[n].outputs;
  return std::all_of(outputs.begin(), outputs.end(), [&](value_id v) { return v == no_value || uses_[v] == 0; });
}

void graph_editor::erase_unread() {
  while (!unread_.empty()) {
    const node_id n = unread_.back();
    unread_.pop_back();
    if (alive_[n] && unread(n) && !defines_symbols(graph_, graph_.nodes[n]))
      remove(n);
  }
}

void graph_editor::tidy() {
  const bool sort = std::exchange(appended_, false);
  std::vector<node> living;
  living.reserve(graph_.nodes.size());
  for (size_t n = 0; n < graph_.nodes.size(); ++n)
    if (alive_[n])
      living.push_back(std::move(graph_.nodes[n]));
  const bool same = living.size() == graph_.nodes.size();
  graph_.nodes = std::move(living);
  if (sort)
    sort_topologically(graph_);
  if (sort || !same)
    relink();
}

} // namespace troupe
