// Small models built in code, for tests of planning and execution.
#pragma once

#include "actors/engine_access.hpp"

namespace troupe::test {

/// Builds a graph of float operators value by value.
class model_builder {
public:
  model_builder() { g_.opsets[""] = 17; }

  value_id input(const std::string& name, symbolic_shape dims) {
    const value_id v = g_.add_value({.name = name, .type = dtype::float32, .dims = std::move(dims)});
    g_.inputs.push_back(v);
    return v;
  }
  /// Adds a call with one output and returns that.
  value_id call(const std::string& op, std::vector<value_id> inputs) {
    const std::string name = op + std::to_string(g_.nodes.size());
    const value_id out = g_.add_value({.name = name});
    g_.add_node({.name = name, .op_type = op, .inputs = std::move(inputs), .outputs = {out}});
    return out;
  }
  void output(value_id v) { g_.outputs.push_back(v); }
  const std::string& name(value_id v) const { return g_.values[v].name; }
  graph build() const { return g_; }

private:
  graph g_;
};

/// `x` → `length` Relu and Sigmoid calls in turn → one output.
inline graph chain(size_t length, symbolic_shape dims = {2, 3}) {
  model_builder b;
  value_id v = b.input("x", std::move(dims));
  for (size_t i = 0; i < length; ++i)
    v = b.call(i % 2 ? "Relu" : "Sigmoid", {v});
  b.output(v);
  return b.build();
}

/// `count` chains from one input, each with an output.
inline graph fan_out(size_t count, size_t length) {
  model_builder b;
  const value_id x = b.input("x", {4});
  for (size_t i = 0; i < count; ++i) {
    value_id v = x;
    for (size_t j = 0; j < length; ++j)
      v = b.call((i + j) % 2 ? "Relu" : "Sigmoid", {v});
    b.output(v);
  }
  return b.build();
}

/// Returns the bytes that one run of a model, nothing fused, needs on a device.
inline int64_t bytes_for_run(const graph& model, const named_tensors& inputs, const std::string& device) {
  engine e({.devices = {device}});
  return bytes_needed(*bound_plan_of(e.load(model, {.fuse = false}), inputs)->layout, 0);
}

inline tensor floats(shape dims, std::vector<float> values) {
  return tensor::of<float>(std::move(dims), values);
}

} // namespace troupe::test
