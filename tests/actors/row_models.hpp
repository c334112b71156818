// Shared by tests of strategies: a model whose rows are independent, and devices that compute as the reference does.
#pragma once

#include "strategy/call_model.hpp"
#include "support/bound_values.hpp"

namespace troupe::test {

/// y = sigmoid(x · w): rows are independent.
inline graph rows_apart() {
  call_model m;
  m.output(m.op("Sigmoid", {m.op("MatMul", {m.input("x", {batch, 4}), m.weights({4, 3})})}, {}, "y"));
  return m.g;
}

inline engine references(size_t count, fault_script script = {}) {
  std::vector<device_factory> devices;
  for (size_t i = 0; i < count; ++i)
    devices.push_back(reference("ref" + std::to_string(i), script));
  return engine_of(std::move(devices));
}

inline tensor y_of(const run_result& r) {
  return r.outputs.at("y");
}

} // namespace troupe::test
