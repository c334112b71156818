// Opsets 1 to 6 put the second operand of arithmetic at an axis of the first: the same results with and without fusion,
// by fast kernels and slow ones.
#include "actors/engine_access.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/small_models.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

attributes at_axis(int64_t axis) {
  return attrs_of({{"broadcast", int64_t{1}}, {"axis", axis}});
}

/// x [n, 2] through `first`, then `op` with b [2], a constant or an input, along axis 0.
graph rows_with(const std::string& first, const std::string& op, bool constant) {
  test::graph_builder b(6);
  const value_id x = b.input("x", {constant ? dim(2) : dim::symbol("n"), 2});
  value_id v = first == "MatMul" ? b.op(first, {x, b.constant("w", floats({2, 2}, {1, 0, 0, 1}))}) : b.op(first, {x});
  const value_id rows = constant ? b.constant("rows", floats({2}, {10, 20})) : b.input("rows", {dim::symbol("n")});
  b.output(b.op(op, {v, rows}, at_axis(0), "y"));
  return b.g;
}

std::vector<float> run_rows(const graph& g, bool constant, bool fuse) {
  engine e({.devices = {"cpu"}});
  named_tensors inputs{{"x", floats({2, 2}, {1, 2, 3, 4})}};
  if (!constant)
    inputs["rows"] = floats({2}, {10, 20});
  const tensor y = e.load(g, {.fuse = fuse}).run(inputs).outputs.at("y");
  const auto values = y.values<float>();
  return {values.begin(), values.end()};
}

} // namespace

TEST_CASE("an operand of opset 6 is at its axis", "[rewrite]") {
  for (bool constant : {false, true})
    for (bool fuse : {false, true})
      for (const std::string first : {"Relu", "MatMul"}) {
        INFO(first << (constant ? ", constant" : "") << (fuse ? ", fused" : ""));
        CHECK(run_rows(rows_with(first, "Add", constant), constant, fuse) == std::vector<float>{11, 12, 23, 24});
        CHECK(run_rows(rows_with(first, "Mul", constant), constant, fuse) == std::vector<float>{10, 20, 60, 80});
        CHECK(run_rows(rows_with(first, "Pow", constant), constant, fuse)[1] == 1024);
      }
}

TEST_CASE("an operand of opset 6 that has no place at its axis is refused", "[rewrite]") {
  const auto refused = [](symbolic_shape x, symbolic_shape y, attributes attrs) {
    test::graph_builder b(6);
    b.output(b.op("Pow", {b.input("x", std::move(x)), b.input("y", std::move(y))}, std::move(attrs)));
    return thrown_by([&] { rewrite(b.g, {}); }).code() == errc::invalid_model;
  };
  CHECK(refused({1, 2, 3, 4}, {1, 2, 5, 4}, {}));
  CHECK(refused({3, 4}, {1, 3, 4}, {}));
  CHECK(refused({3, 4}, {4}, at_axis(0)));
  CHECK(refused({3, 4}, {3}, at_axis(2)));
  CHECK_FALSE(refused({3, 4}, {3}, at_axis(0)));
}

TEST_CASE("slopes of opset 6 are by channel", "[rewrite]") {
  for (bool fuse : {false, true}) {
    test::graph_builder b(6);
    const value_id x = b.input("x", {1, 2, 2});
    b.output(b.op("PRelu", {x, b.constant("slopes", floats({2}, {10, 100}))}, {}, "y"));
    engine e({.devices = {"cpu"}});
    const tensor x_given = floats({1, 2, 2}, {-1, -2, -3, -4});
    const tensor y = e.load(b.g, {.fuse = fuse}).run({{"x", x_given}}).outputs.at("y");
    CHECK(y.values<float>()[1] == -20);
    CHECK(y.values<float>()[2] == -300);
  }
}
