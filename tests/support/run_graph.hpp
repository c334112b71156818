// Runs a graph node by node through the reference kernels: the oracle for rewrites.
#pragma once

#include "graph/graph.hpp"

namespace troupe::test {

/// Builds graphs by name, with attributes.
struct graph_builder {
  graph g;

  explicit graph_builder(int64_t opset = 17) { g.opsets[""] = opset; }

  value_id input(const std::string& name, symbolic_shape dims, dtype type = dtype::float32);
  value_id constant(const std::string& name, tensor bytes) { return g.add_constant(name, std::move(bytes)); }
  /// A constant vector of int64.
  value_id integers(const std::vector<int64_t>& values);
  /// A float constant without dims.
  value_id scalar(float value);
  /// Adds a call with one output, whose name is `name` or made up, and returns that.
  value_id op(const std::string& type, std::vector<value_id> inputs, attributes attrs = {},
              const std::string& name = "");
  void output(value_id v) { g.outputs.push_back(v); }
};

/// Attributes from pairs.
attributes attrs_of(std::initializer_list<std::pair<std::string, attribute>> values);

/// Normally distributed floats, the same for equal seeds.
tensor random_tensor(shape dims, uint32_t seed);

/// Runs a resolved and inferred graph on inputs in the order of `g.inputs`; returns the outputs in order.
std::vector<tensor> run_graph(const graph& g, const std::vector<tensor>& inputs);

/// Returns how many nodes of that kind there are; `op` is e.g. "Conv" or "troupe.Conv".
size_t count_nodes(const graph& g, std::string_view op);

/// Rewrites `g` with and without fusion and requires the results of the graph as it is, within `tolerance`. Returns the fused
/// graph.
graph check_fusion(const graph& g, const std::vector<tensor>& inputs, double tolerance = 1e-4);

} // namespace troupe::test
