// Builds graphs in code, step by step: the one builder of the tests. Its graphs are as plain as a loader's: nothing is
// checked, and values are inferred only by members that are documented to infer. (Users build models with
// `troupe::model_builder`.)
#pragma once

#include "ops/op.hpp"

namespace troupe::test {

/// See the top of this file. A value without a name is called "v" and its number, a made-up operator's node "n" and its
/// number; nodes of real operators are called after operator and first output: "Relu_y".
struct graph_builder {
  graph g;

  explicit graph_builder(int64_t opset = 17) { g.opsets[""] = opset; }

  // -- values without a producer
  value_id value(symbolic_shape dims, dtype type = dtype::float32);
  value_id input(symbolic_shape dims, dtype type = dtype::float32);
  value_id input(const std::string& name, symbolic_shape dims, dtype type = dtype::float32);
  /// A value whose elements are known on the host.
  value_id known(symbolic_shape dims, std::vector<dim> elements);
  value_id constant(const std::string& name, tensor bytes) { return g.add_constant(name, std::move(bytes)); }
  /// A constant vector of int64.
  value_id integers(const std::vector<int64_t>& values);
  /// Constants without dims.
  value_id integer(int64_t value);
  value_id scalar(float value);

  // -- calls of real operators
  /// Adds a call with one output and returns that.
  value_id op(const std::string& type, std::vector<value_id> inputs, attributes attrs = {},
              const std::string& name = "");
  /// The same; the output's type and dims are inferred at once.
  value_id inferred(const std::string& type, std::vector<value_id> inputs, attributes attrs = {});
  /// Adds a call whose outputs have these names, and returns them.
  std::vector<value_id> call(const std::string& type, std::vector<value_id> inputs,
                             const std::vector<std::string>& outputs, attributes attrs = {},
                             const std::string& domain = "");

  // -- calls of made-up operators
  /// Adds a call whose output is a float value of these dims, and returns that.
  value_id node(const op_def& def, std::vector<value_id> inputs, symbolic_shape dims);
  value_id node_to(const op_def& def, std::vector<value_id> inputs, value_id output);
  /// Adds a call whose output has a first dim that depends on data, and a second of 4.
  value_id data_dependent(const op_def& def, std::vector<value_id> inputs);

  // -- the ends
  void output(value_id v) { g.outputs.push_back(v); }
  /// Returns the graph with these outputs.
  std::shared_ptr<const graph> done(std::vector<value_id> outputs);
  /// The same, resolved and inferred.
  std::shared_ptr<const graph> program(std::vector<value_id> outputs);
  const std::string& name(value_id v) const { return g.values[v].name; }

private:
  std::string next_name() const { return fmt::format("v{}", g.values.size()); }
};

/// Builds the body of a control-flow node of another builder's graph, which stays where it is.
struct body_builder : graph_builder {
  explicit body_builder(graph_builder* around) : outer(around) { g.name = "body"; }

  /// Returns the body's own id of a value of the graph around it.
  value_id capture(value_id v);

  graph_builder* outer;
  std::vector<value_id> captured_from;
};

/// Adds a control-flow node called `name` with `outputs` results, which are called `name`.0, `name`.1 …
std::vector<value_id> add_control(graph_builder& b, const std::string& op, const std::string& name,
                                  std::vector<value_id> inputs, std::map<std::string, body_builder*> bodies,
                                  size_t outputs, attributes attrs = {});

/// A loop of one carried value: `step` gets the body with its inputs (iteration, condition, value) and returns the
/// condition and value after the iteration. Returns the loop's result.
template <class F>
value_id add_loop(graph_builder& b, const std::string& name, value_id trips, value_id condition, value_id start,
                  F&& step) {
  body_builder body(&b);
  const dtype type = b.g.values[start].type;
  const value_id i = body.input(name + ".i", {}, dtype::int64), go = body.input(name + ".go", {}, dtype::boolean);
  const value_id x = body.g.add_value({.name = name + ".x", .type = type});
  body.g.inputs.push_back(x);
  const std::pair<value_id, value_id> results = step(body, i, go, x);
  body.output(results.first);
  body.output(results.second);
  return add_control(b, "Loop", name, {trips, condition, start}, {{"body", &body}}, 1)[0];
}

/// Attributes from names and values.
attributes attrs_of(std::initializer_list<std::pair<std::string, attribute>> values);

/// Returns the graph with its operators resolved and all types and dims inferred; nodes must be in topological order.
graph inferred(graph g);

/// The same, to plan with.
std::shared_ptr<const graph> inferred_program(graph g);

} // namespace troupe::test
