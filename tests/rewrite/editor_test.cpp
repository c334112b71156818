// Nodes enter a graph under edit as inference sees them, or not at all.
#include "rewrite/editor.hpp"

#include "rewrite/match.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// Relu of [2, 6], whose result a Neg reads.
struct edited {
  graph_builder b;
  value_id x = b.input("x", {2, 6});
  value_id y = b.inferred("Relu", {x});
  value_id z = b.inferred("Neg", {y});
  node_id relu = 0;

  edited() { b.output(z); }
};

} // namespace

TEST_CASE("a node that makes other values than those it replaces is refused", "[rewrite]") {
  edited g;
  graph_editor e(g.b.g);
  const auto attempt = [&](node n) {
    const value before = e.val(g.y);
    const bool taken = e.replace(g.relu, std::move(n));
    CHECK((e.val(g.y).type == before.type && e.val(g.y).dims == before.dims));
    return taken;
  };
  attributes to_half, groups;
  to_half.set("to", static_cast<int64_t>(dtype::float16));
  groups.set("num_groups", int64_t{4});
  CHECK_FALSE(attempt(make_node("type", "", "Cast", {g.x}, {g.y}, to_half)));
  CHECK_FALSE(attempt(make_node("dims", "", "Transpose", {g.x}, {g.y})));
  CHECK_FALSE(attempt(make_node("operands", "", "GroupNormalization", {g.x, g.x, g.x}, {g.y}, groups)));
  CHECK_FALSE(e.replace_all(std::array{g.relu}, make_node("all", "", "Transpose", {g.x}, {g.y})));
  CHECK(e.at(g.relu).op_type == "Relu");
  CHECK((e.producer(g.y) == g.relu && e.uses(g.x) == 1));
  CHECK(attempt(make_node("fits", "", "Sigmoid", {g.x}, {g.y})));
  CHECK(e.at(g.relu).op_type == "Sigmoid");
}

TEST_CASE("values that a pass adds are made by its nodes, and constants have no node", "[rewrite]") {
  edited g;
  graph_editor e(g.b.g);
  const value_id turned = e.add_result("turned");
  e.add_node(make_node("turned", "", "Transpose", {g.x}, {turned}));
  CHECK(to_string(*e.val(turned).dims) == "[6, 2]");
  CHECK(e.val(turned).type == dtype::float32);
  const value_id c = e.add_constant("c", random_tensor({2, 6}, 1));
  CHECK_THROWS_AS(e.add_node(make_node("constant", "", "Relu", {g.x}, {c})), error);
  CHECK_THROWS_AS(e.replace(g.relu, make_node("constant", "", "Relu", {g.x}, {c})), error);
}
