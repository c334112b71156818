// Random models of a few float operators, with inputs and results: for tests of what happens around the computation.
#pragma once

#include "support/direct_evaluation.hpp"
#include "support/small_models.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace troupe::test {

using random_source = std::mt19937_64;

/// Of the matrices: four devices have a part each.
inline constexpr int64_t random_model_size = 16;

inline size_t below(random_source& r, size_t limit) {
  return std::uniform_int_distribution<size_t>(0, limit - 1)(r);
}

/// A DAG of float operators on "x" and "y", [16, 16], with one to three outputs.
inline graph random_model(random_source& r) {
  graph_builder b;
  constexpr int64_t size = random_model_size;
  std::vector<value_id> values{b.input("x", {size, size}), b.input("y", {size, size})};
  const size_t count = 3 + below(r, 18);
  for (size_t i = 0; i < count; ++i) {
    const value_id a = values[below(r, values.size())], c = values[below(r, values.size())];
    switch (below(r, 3)) {
      case 0: values.push_back(b.op("Sigmoid", {a})); break;
      case 1: values.push_back(b.op("Relu", {a})); break;
      default: values.push_back(b.op("Sigmoid", {b.op("MatMul", {a, c})})); break; // products stay small
    }
  }
  for (size_t i = 0; i < std::min<size_t>(values.size() - 2, 1 + below(r, 3)); ++i)
    b.output(values[values.size() - 1 - i]);
  return b.g;
}

inline named_tensors random_inputs(random_source& r) {
  named_tensors inputs;
  for (const char* name : {"x", "y"}) {
    tensor t(dtype::float32, {random_model_size, random_model_size});
    std::generate_n(t.mutable_data<float>(), t.size(), [&] { return std::uniform_real_distribution<float>(-2, 2)(r); });
    inputs[name] = t;
  }
  return inputs;
}

/// Whether outputs are the same, bit by bit; sums of parts, which are added in another order, within `tolerance`.
inline bool equal(const named_tensors& a, const named_tensors& b, double tolerance) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto& p, const auto& q) {
    return p.first == q.first && p.second.dims() == q.second.dims() &&
           std::ranges::equal(p.second.template values<float>(), q.second.template values<float>(),
                              [&](float x, float y) { return std::abs(x - y) <= tolerance; });
  });
}

} // namespace troupe::test
