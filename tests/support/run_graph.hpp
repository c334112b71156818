// Runs a graph node by node through the reference kernels: the oracle for rewrites.
#pragma once

#include "support/graph_builder.hpp"

namespace troupe::test {

inline std::vector<float> values_of(const tensor& t) {
  return {t.values<float>().begin(), t.values<float>().end()};
}

inline tensor floats(shape dims, std::vector<float> values) {
  return tensor::of<float>(std::move(dims), values);
}

/// Normally distributed floats, the same for equal seeds.
tensor random_tensor(shape dims, uint32_t seed);

/// Runs a resolved graph without control flow on inputs in the order of `g.inputs`; returns the values, undefined where
/// nothing makes one. A value that the host knows and that nothing else makes is inferred.
std::vector<tensor> run_values(const graph& g, const std::vector<tensor>& inputs);

/// Runs a resolved and inferred graph on inputs in the order of `g.inputs`; returns the outputs in order.
std::vector<tensor> run_graph(const graph& g, const std::vector<tensor>& inputs);

/// Returns how many nodes of that kind there are; `op` is e.g. "Conv" or "troupe.Conv".
size_t count_nodes(const graph& g, std::string_view op);

/// Rewrites `g` without fusion, with it, and for GPUs, and checks each step (verified_rewrite.hpp) within `tolerance`.
/// Returns the fused graph; the one for GPUs if `for_gpus`.
graph check_fusion(const graph& g, const std::vector<tensor>& inputs, double tolerance = 1e-4, bool for_gpus = false);

} // namespace troupe::test
