// Graphs with control flow, built in code.
#pragma once

#include "graph/bodies.hpp"
#include "support/run_graph.hpp"
#include "support/small_models.hpp"

namespace troupe::test {

/// Builds the body of a control-flow node of another builder's graph, which stays where it is.
struct body_builder : graph_builder {
  explicit body_builder(graph_builder* around) : outer(around) { g.name = "body"; }

  /// Returns what stands in the body for a value of the graph around it.
  value_id capture(value_id v);

  graph_builder* outer;
  std::vector<value_id> captured_from;
};

/// Adds a control-flow node called `name` with `outputs` results, which are called `name`.0, `name`.1 …
std::vector<value_id> add_control(graph_builder& b, const std::string& op, const std::string& name,
                                  std::vector<value_id> inputs, std::map<std::string, body_builder*> bodies,
                                  size_t outputs, attributes attrs = {});

/// A loop of one carried value: `step` gets the body with its inputs (iteration, condition, value) and returns the condition and
/// value behind the iteration. Returns the loop's result.
template <class F>
value_id add_loop(graph_builder& b, const std::string& name, value_id trips, value_id condition, value_id start,
                  F&& step) {
  body_builder body(&b);
  const value start_value = b.g.values[start];
  const value_id i = body.input(name + ".i", {}, dtype::int64), go = body.input(name + ".go", {}, dtype::boolean);
  const value_id x = body.g.add_value({.name = name + ".x", .type = start_value.type});
  body.g.inputs.push_back(x);
  const std::pair<value_id, value_id> results = step(body, i, go, x);
  body.output(results.first);
  body.output(results.second);
  return add_control(b, "Loop", name, {trips, condition, start}, {{"body", &body}}, 1)[0];
}

/// At most n times: x ← x · 2 + y, until x[0] ≥ limit[0]; the outputs are "loop.0", the last x, and "loop.1", all of them.
graph growing_loop();

/// Its inputs with x = [1, 10], y = [1, 0].
named_tensors growing_inputs(int64_t n, float limit);

inline tensor count(int64_t n) {
  return tensor::scalar(n);
}

} // namespace troupe::test
