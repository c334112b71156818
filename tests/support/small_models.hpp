// Small models built in code, for tests of planning and execution.
#pragma once

#include "actors/engine_access.hpp"
#include "support/run_graph.hpp"

namespace troupe::test {

/// `x` → `length` Relu and Sigmoid calls in turn → one output.
inline graph chain(size_t length, symbolic_shape dims = {2, 3}) {
  graph_builder b;
  value_id v = b.input("x", std::move(dims));
  for (size_t i = 0; i < length; ++i)
    v = b.op(i % 2 ? "Relu" : "Sigmoid", {v});
  b.output(v);
  return b.g;
}

/// `count` chains from one input, each with an output.
inline graph fan_out(size_t count, size_t length) {
  graph_builder b;
  const value_id x = b.input("x", {4});
  for (size_t i = 0; i < count; ++i) {
    value_id v = x;
    for (size_t j = 0; j < length; ++j)
      v = b.op((i + j) % 2 ? "Relu" : "Sigmoid", {v});
    b.output(v);
  }
  return b.g;
}

/// next1 = state1 + x, next2 = state2 + next1, y = −next2.
inline graph two_states() {
  graph_builder b;
  const value_id x = b.input("x", {1}), one = b.input("state1", {1}), two = b.input("state2", {1});
  const value_id next = b.op("Add", {one, x}, {}, "next1"), last = b.op("Add", {two, next}, {}, "next2");
  b.g.outputs = {next, last, b.op("Neg", {last}, {}, "y")};
  return b.g;
}

/// Returns the bytes that one run of a model, nothing fused, needs on a device.
inline int64_t bytes_for_run(const graph& model, const named_tensors& inputs, const std::string& device) {
  engine e({.devices = {device}});
  return bytes_needed(*bound_plan_of(e.load(model, {.fuse = false}), inputs)->layout, 0);
}

} // namespace troupe::test
