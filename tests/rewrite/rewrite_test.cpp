#include "rewrite/rewrite.hpp"

#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"

using namespace troupe;

namespace {

/// A graph under construction: values and nodes by name.
struct builder {
  graph g;

  builder() { g.opsets[""] = 17; }

  value_id input(const std::string& name, symbolic_shape dims, dtype type = dtype::float32) {
    const value_id v = g.add_value({.name = name, .type = type, .dims = std::move(dims)});
    g.inputs.push_back(v);
    return v;
  }
  value_id op(const std::string& type, std::vector<value_id> inputs, const std::string& name, attributes attrs = {}) {
    const value_id out = g.add_value({.name = name});
    node n{.name = "node_" + name, .op_type = type, .attrs = std::move(attrs), .inputs = std::move(inputs)};
    n.outputs = {out};
    g.add_node(std::move(n));
    return out;
  }
};

tensor floats(shape dims, std::vector<float> values) {
  return tensor::of<float>(std::move(dims), std::span<const float>(values));
}

} // namespace

TEST_CASE("dead nodes and unwanted outputs go", "[rewrite]") {
  builder b;
  const value_id x = b.input("x", {2});
  const value_id a = b.op("Relu", {x}, "a"), c = b.op("Sigmoid", {x}, "c");
  b.op("Relu", {c}, "dead");
  b.g.outputs = {a, c};
  const graph all = rewrite(b.g, {});
  CHECK(all.nodes.size() == 2);
  const graph one = rewrite(b.g, {.outputs = {"c"}});
  REQUIRE(one.nodes.size() == 1);
  CHECK(one.nodes[0].op_type == "Sigmoid");
  CHECK(one.values[one.outputs.at(0)].name == "c");
  CHECK_THROWS_AS(rewrite(b.g, {.outputs = {"nope"}}), error);
}

TEST_CASE("equal nodes are merged, graph outputs kept", "[rewrite]") {
  builder b;
  const value_id x = b.input("x", {2});
  const value_id a = b.op("Relu", {x}, "a"), c = b.op("Relu", {x}, "c");
  b.g.outputs = {b.op("Sigmoid", {a}, "y"), b.op("Sigmoid", {c}, "z")};
  const graph g = rewrite(b.g, {});
  CHECK(g.nodes.size() == 3); // one Relu, a Sigmoid for each output
}

TEST_CASE("nodes over small constants are computed at once, over big ones become recipes", "[rewrite]") {
  for (const bool big : {false, true}) {
    builder b;
    const value_id x = b.input("x", {2});
    const int64_t n = big ? 1 << 20 : 2;
    const value_id w = b.g.add_constant("w", floats({n}, std::vector<float>(static_cast<size_t>(n), -3.f)));
    const value_id r = b.op("Relu", {w}, "r"), s = b.op("Sigmoid", {r}, "s");
    b.g.outputs = {b.op("Relu", {x}, "y"), s};
    graph& g = b.g;
    // An Identity keeps output s alive; without the folding there would be three nodes.
    if (!find_op("", "Identity", 17))
      return;
    const graph out = rewrite(g, {});
    REQUIRE(out.nodes.size() == 2);
    const value& folded = out.values[out.nodes[1].inputs[0]];
    REQUIRE(folded.constant);
    CHECK((folded.constant->step != nullptr) == big);
    CHECK(materialise(*folded.constant).values<float>()[0] == 0.5f);
  }
}
