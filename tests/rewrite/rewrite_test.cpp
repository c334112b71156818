#include "rewrite/rewrite.hpp"

#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {} // namespace

TEST_CASE("dead nodes and unwanted outputs go", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {2});
  const value_id a = b.op("Relu", {x}, {}, "a"), c = b.op("Sigmoid", {x}, {}, "c");
  b.op("Relu", {c}, {}, "dead");
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
  graph_builder b;
  const value_id x = b.input("x", {2});
  const value_id a = b.op("Relu", {x}, {}, "a"), c = b.op("Relu", {x}, {}, "c");
  b.g.outputs = {b.op("Sigmoid", {a}, {}, "y"), b.op("Sigmoid", {c}, {}, "z")};
  const graph g = rewrite(b.g, {});
  CHECK(g.nodes.size() == 3); // one Relu, a Sigmoid for each output
}

TEST_CASE("nodes over small constants are computed at once, over big ones become recipes", "[rewrite]") {
  for (const bool big : {false, true}) {
    graph_builder b;
    const value_id x = b.input("x", {2});
    const int64_t n = big ? 1 << 20 : 2;
    const value_id w = b.constant("w", floats({n}, std::vector<float>(static_cast<size_t>(n), -3.f)));
    const value_id r = b.op("Relu", {w}, {}, "r"), s = b.op("Sigmoid", {r}, {}, "s");
    b.g.outputs = {b.op("Relu", {x}, {}, "y"), s};
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
