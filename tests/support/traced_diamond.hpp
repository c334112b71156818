// A run on two devices, for tests of traces.
#pragma once

#include "support/small_models.hpp"
#include "trace/run_trace.hpp"

namespace troupe::test {

/// A diamond with a long arm: x → Sigmoid → Sigmoid → Add, x → Relu → Add; and a Mul of the first two.
inline graph long_diamond() {
  graph_builder b;
  const value_id x = b.input("x", {2, 3});
  const value_id a = b.op("Sigmoid", {x}), c = b.op("Relu", {x});
  b.output(b.op("Add", {b.op("Sigmoid", {a}), c}));
  b.output(b.op("Mul", {a, c}));
  return b.g;
}

/// Returns the trace of a run of it, each node on another device than the one before.
inline run_trace traced_diamond() {
  engine e({.devices = {"cpu*2"}});
  const session s = e.load(long_diamond(), {.policy = placement_policy::round_robin, .fuse = false});
  return *s.run({{"x", floats({2, 3}, {-1, 2, 3, 4, 5, 6})}}, {.trace = true}).trace;
}

} // namespace troupe::test
