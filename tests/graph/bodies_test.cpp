#include "graph/bodies.hpp"

#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// A body with `formal` inputs and `captured` values.
graph_ptr make_body(size_t formal, size_t captured, size_t nodes = 1) {
  graph g;
  for (size_t i = 0; i < formal + captured; ++i) {
    g.inputs.push_back(g.add_value({.name = "in" + std::to_string(i), .type = dtype::float32}));
    if (i >= formal)
      g.captured.push_back(g.inputs.back());
  }
  for (size_t i = 0; i < nodes; ++i)
    g.add_node({.name = "n" + std::to_string(i), .op_type = "Relu"});
  return std::make_shared<const graph>(std::move(g));
}

/// An If whose branches capture one value and two.
node make_if() {
  node n{.name = "choice", .op_type = "If", .inputs = {0, 1, 2, 3}, .captures = 3};
  n.attrs.set("then_branch", make_body(0, 2));
  n.attrs.set("else_branch", make_body(0, 1));
  return n;
}

} // namespace

TEST_CASE("a node's bodies come by the names of their attributes, with their captures", "[graph][control]") {
  const node n = make_if();
  CHECK(has_body(n));
  CHECK_FALSE(has_body(node{.op_type = "Relu"}));
  const std::vector<node_body> bodies = bodies_of(n);
  REQUIRE(bodies.size() == 2);
  CHECK(bodies[0].name == "else_branch");
  CHECK(bodies[0].first_capture == 1);
  CHECK(bodies[1].name == "then_branch");
  CHECK(bodies[1].first_capture == 2);
  CHECK(bodies[1].formal_inputs() == 0);
}

TEST_CASE("a node that lists other captures than its bodies have is refused", "[graph][control]") {
  node n = make_if();
  n.captures = 2;
  CHECK(thrown_by([&] { bodies_of(n); }).code() == errc::invalid_model);
  n = make_if();
  n.inputs.resize(2);
  CHECK(thrown_by([&] { bodies_of(n); }).code() == errc::invalid_model);
  n = make_if();
  n.attrs.set("then_branch", graph_ptr());
  CHECK(thrown_by([&] { bodies_of(n); }).code() == errc::invalid_model);
}

TEST_CASE("bodies and nodes inside bodies count", "[graph][control]") {
  graph inner;
  inner.add_node(make_if());
  node loop{.name = "loop", .op_type = "Loop"};
  loop.attrs.set("body", std::make_shared<const graph>(inner));
  graph g;
  g.add_node(loop);
  g.add_node({.op_type = "Relu"});
  CHECK(count_bodies(g) == 3);
  CHECK(count_nodes(g) == 2 + 1 + 2);
}
