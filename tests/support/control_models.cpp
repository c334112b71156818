#include "support/control_models.hpp"

namespace troupe::test {

value_id body_builder::capture(value_id v) {
  for (size_t i = 0; i < captured_from.size(); ++i)
    if (captured_from[i] == v)
      return g.captured[i];
  value copy{.name = outer->g.values[v].name, .type = outer->g.values[v].type, .dims = outer->g.values[v].dims};
  g.captured.push_back(g.add_value(std::move(copy)));
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

} // namespace troupe::test
