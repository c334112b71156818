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

graph growing_loop() {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {dim::symbol("d")}),
                 y = b.input("y", {dim::symbol("d")}), limit = b.input("limit", {1});
  body_builder body(&b);
  body.input("i", {}, dtype::int64);
  body.input("go", {}, dtype::boolean);
  const value_id v = body.input("v", {dim::symbol("d")});
  const value_id next = body.op("Add", {body.op("Mul", {v, body.scalar(2)}), body.capture(y)});
  const value_id first = body.op("Gather", {next, body.integers({0})});
  body.output(body.op("Less", {first, body.capture(limit)}));
  body.output(next);
  body.output(next);
  for (value_id result : add_control(b, "Loop", "loop", {n, no_value, x}, {{"body", &body}}, 2))
    b.output(result);
  return b.g;
}

named_tensors growing_inputs(int64_t n, float limit) {
  return {{"n", count(n)}, {"x", floats({2}, {1, 10})}, {"y", floats({2}, {1, 0})}, {"limit", floats({1}, {limit})}};
}

} // namespace troupe::test
