// The results of a model, node by node on the host: the oracle for everything that plans, places and schedules.
#pragma once

#include "actors/engine_access.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"

namespace troupe::test {

/// Runs a graph of single-output nodes, topologically sorted, through the reference kernels.
inline named_tensors evaluate_directly(graph g, const named_tensors& inputs) {
  resolve(g);
  std::vector<tensor> values(g.values.size());
  for (value_id v : g.inputs)
    values[v] = inputs.at(g.values[v].name);
  for (const node& n : g.nodes) {
    std::vector<tensor> in;
    for (value_id v : n.inputs)
      in.push_back(g.values[v].constant ? materialise(*g.values[v].constant) : values[v]);
    values[n.outputs[0]] = evaluate(*n.def, n.attrs, in).at(0);
  }
  named_tensors outputs;
  for (value_id v : g.outputs)
    outputs[g.values[v].name] = values[v];
  return outputs;
}

} // namespace troupe::test
