// Models whose states add up what they are given, and values for them.
#pragma once

#include "support/graph_builder.hpp"

#include <algorithm>

namespace troupe::test {

/// next = state + x and y = −next; all of one shape.
inline graph summing_model(const shape& dims) {
  graph_builder b;
  const value_id x = b.input("x", to_symbolic(dims)), state = b.input("state", to_symbolic(dims));
  const value_id next = b.op("Add", {state, x}, {}, "next");
  b.g.outputs = {next, b.op("Neg", {next}, {}, "y")};
  return b.g;
}

/// next0 = state0 + x, next1 = state1 + x … for `count` states, so that round-robin puts some on each device, and y,
/// their sum; all of one shape.
inline graph summing_states(size_t count, const shape& dims) {
  graph_builder b;
  const value_id x = b.input("x", to_symbolic(dims));
  value_id sum = no_value;
  for (size_t i = 0; i < count; ++i) {
    const value_id state = b.input(fmt::format("state{}", i), to_symbolic(dims));
    const value_id next = b.op("Add", {state, x}, {}, fmt::format("next{}", i));
    sum = i == 0 ? next : b.op("Add", {sum, next});
    b.output(next);
  }
  b.output(b.op("Identity", {sum}, {}, "y"));
  return b.g;
}

inline tensor filled(const shape& dims, float value) {
  tensor t(dtype::float32, dims);
  std::fill_n(t.mutable_data<float>(), t.size(), value);
  return t;
}

inline bool same(const tensor& a, const tensor& b) {
  return a.type() == b.type() && a.dims() == b.dims() && std::ranges::equal(a.values<float>(), b.values<float>());
}

} // namespace troupe::test
