#include "support/graph_builder.hpp"

#include "ops/registry.hpp"

namespace troupe::test {

value_id graph_builder::value(symbolic_shape dims, dtype type) {
  return g.add_value({.name = next_name(), .type = type, .dims = std::move(dims)});
}

value_id graph_builder::input(symbolic_shape dims, dtype type) {
  return input(next_name(), std::move(dims), type);
}

value_id graph_builder::input(const std::string& name, symbolic_shape dims, dtype type) {
  g.inputs.push_back(g.add_value({.name = name, .type = type, .dims = std::move(dims)}));
  return g.inputs.back();
}

value_id graph_builder::known(symbolic_shape dims, std::vector<dim> elements) {
  const value_id v = value(std::move(dims), dtype::int64);
  g.values[v].known = std::move(elements);
  return v;
}

value_id graph_builder::integers(const std::vector<int64_t>& values) {
  return constant(next_name(), tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

value_id graph_builder::integer(int64_t value) {
  return constant(next_name(), tensor::scalar(value));
}

value_id graph_builder::scalar(float value) {
  return constant(next_name(), tensor::scalar(value));
}

value_id graph_builder::op(const std::string& type, std::vector<value_id> inputs, attributes attrs,
                           const std::string& name) {
  return call(type, std::move(inputs), {name.empty() ? next_name() : name}, std::move(attrs))[0];
}

value_id graph_builder::inferred(const std::string& type, std::vector<value_id> inputs, attributes attrs) {
  const value_id out = op(type, std::move(inputs), std::move(attrs));
  resolve_node(g.nodes.back(), g.opsets);
  infer_node(g, g.nodes.back());
  return out;
}

std::vector<value_id> graph_builder::call(const std::string& type, std::vector<value_id> inputs,
                                          const std::vector<std::string>& outputs, attributes attrs,
                                          const std::string& domain) {
  std::vector<value_id> results;
  for (const std::string& name : outputs)
    results.push_back(g.add_value({.name = name}));
  g.add_node({.name = type + "_" + outputs.at(0),
              .op_type = type,
              .domain = domain,
              .attrs = std::move(attrs),
              .inputs = std::move(inputs),
              .outputs = results});
  return results;
}

value_id graph_builder::node(const op_def& def, std::vector<value_id> inputs, symbolic_shape dims) {
  return node_to(def, std::move(inputs), value(std::move(dims)));
}

value_id graph_builder::node_to(const op_def& def, std::vector<value_id> inputs, value_id output) {
  g.add_node({.name = fmt::format("n{}", g.nodes.size()),
              .op_type = std::string(def.name),
              .domain = std::string(def.domain),
              .inputs = std::move(inputs),
              .outputs = {output},
              .def = &def});
  return output;
}

value_id graph_builder::data_dependent(const op_def& def, std::vector<value_id> inputs) {
  return node(def, std::move(inputs), {dim::symbol("#" + next_name() + ".0"), 4});
}

std::shared_ptr<const graph> graph_builder::done(std::vector<value_id> outputs) {
  g.outputs = std::move(outputs);
  return std::make_shared<const graph>(g);
}

std::shared_ptr<const graph> graph_builder::program(std::vector<value_id> outputs) {
  return inferred_program(*done(std::move(outputs)));
}

value_id body_builder::capture(value_id v) {
  for (size_t i = 0; i < captured_from.size(); ++i)
    if (captured_from[i] == v)
      return g.captured[i];
  const troupe::value& from = outer->g.values[v];
  g.captured.push_back(g.add_value({.name = from.name, .type = from.type, .dims = from.dims}));
  captured_from.push_back(v);
  return g.captured.back();
}

std::vector<value_id> add_control(graph_builder& b, const std::string& op, const std::string& name,
                                  std::vector<value_id> inputs, std::map<std::string, body_builder*> bodies,
                                  size_t outputs, attributes attrs) {
  node n{.name = name, .op_type = op, .attrs = std::move(attrs), .inputs = std::move(inputs)};
  for (auto& [attribute, body] : bodies) {
    body->g.inputs.insert(body->g.inputs.end(), body->g.captured.begin(), body->g.captured.end());
    n.inputs.insert(n.inputs.end(), body->captured_from.begin(), body->captured_from.end());
    n.captures += body->captured_from.size();
    n.attrs.set(attribute, std::make_shared<const graph>(body->g));
  }
  for (size_t i = 0; i < outputs; ++i)
    n.outputs.push_back(b.g.add_value({.name = fmt::format("{}.{}", name, i)}));
  const std::vector<value_id> results = n.outputs;
  b.g.add_node(std::move(n));
  return results;
}

attributes attrs_of(std::initializer_list<std::pair<std::string, attribute>> values) {
  attributes attrs;
  for (const auto& [name, value] : values)
    attrs.set(name, value);
  return attrs;
}

graph inferred(graph g) {
  resolve(g);
  for (node& n : g.nodes)
    infer_node(g, n);
  return g;
}

std::shared_ptr<const graph> inferred_program(graph g) {
  return std::make_shared<const graph>(inferred(std::move(g)));
}

} // namespace troupe::test
