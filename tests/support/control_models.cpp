#include "support/control_models.hpp"

namespace troupe::test {

graph growing_loop() {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {dim::symbol("d")}),
                 y = b.input("y", {dim::symbol("d")}), limit = b.input("limit", {1});
  body_builder body(&b);
  body.input("i", {}, dtype::int64);
  body.input("go", {}, dtype::boolean);
  const value_id v = body.input("v", {dim::symbol("d")});
  const value_id next = body.op("Add", {body.op("Mul", {v, body.scalar(2)}), body.capture(y)});
  const value_id first = body.op("Gather", {next, body.integers({0})});
  body.output(body.op("Less", {first, body.capture(limit)}));
  body.output(next);
  body.output(next);
  for (value_id result : add_control(b, "Loop", "loop", {n, no_value, x}, {{"body", &body}}, 2))
    b.output(result);
  return b.g;
}

named_tensors growing_inputs(int64_t n, float limit) {
  return {{"n", count(n)}, {"x", floats({2}, {1, 10})}, {"y", floats({2}, {1, 0})}, {"limit", floats({1}, {limit})}};
}

} // namespace troupe::test
