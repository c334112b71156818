// Graphs as plain data: their invariants, their order, and the removal of nodes that no output needs.
#include "graph/graph.hpp"

#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

value_id add_value(graph& g, const std::string& name) {
  return g.add_value({.name = name, .type = dtype::float32, .dims = symbolic_shape{2}});
}

node_id add_node(graph& g, const std::string& name, std::vector<value_id> inputs, value_id output) {
  return g.add_node({.name = name, .op_type = "Sum", .inputs = std::move(inputs), .outputs = {output}});
}

std::vector<std::string> names_of(const graph& g) {
  std::vector<std::string> names;
  for (const node& n : g.nodes)
    names.push_back(n.name);
  return names;
}

/// x → first → a → second → y, listed from the back.
struct backwards {
  graph g;
  value_id x = add_value(g, "x"), a = add_value(g, "a"), y = add_value(g, "y");

  backwards() {
    g.inputs = {x};
    g.outputs = {y};
    add_node(g, "second", {a}, y);
    add_node(g, "first", {x}, a);
  }
};

} // namespace

TEST_CASE("a sorted graph has producers before consumers, and keeps an order that is topological", "[graph][A1][C5]") {
  backwards b;
  CHECK_NOTHROW(validate(b.g));
  sort_topologically(b.g);
  CHECK(names_of(b.g) == std::vector<std::string>{"first", "second"});
  sort_topologically(b.g);
  CHECK(names_of(b.g) == std::vector<std::string>{"first", "second"});
}

TEST_CASE("a cycle is refused by the names of its nodes", "[graph][A1][C5]") {
  backwards b;
  b.g.nodes[1].inputs = {b.y};
  const error e = thrown_by([&] { sort_topologically(b.g); });
  CHECK(e.code() == errc::invalid_model);
  CHECK_THAT(e.what(), Contains("cycle") && Contains("first"));
}

TEST_CASE("a broken invariant of a graph is named", "[graph][A1]") {
  const auto problem = [](void (*spoil)(backwards&)) {
    backwards b;
    spoil(b);
    const error e = thrown_by([&] { validate(b.g); });
    CHECK(e.code() == errc::invalid_model);
    return std::string(e.what());
  };
  CHECK_THAT(problem([](backwards& b) { b.g.nodes[0].outputs = {b.a}; }), Contains("'a' has two producers"));
  CHECK_THAT(problem([](backwards& b) { b.g.nodes[0].inputs = {add_value(b.g, "lost")}; }), Contains("'lost'"));
  CHECK_THAT(problem([](backwards& b) { b.g.nodes[0].inputs = {77}; }), Contains("does not exist"));
  CHECK_THAT(problem([](backwards& b) { b.g.outputs = {add_value(b.g, "lost")}; }), Contains("output 'lost'"));
}

TEST_CASE("nodes that no output needs go, inputs stay", "[graph][A4]") {
  backwards b;
  const value_id unused = add_value(b.g, "unused"), dead = add_value(b.g, "dead");
  b.g.inputs.push_back(unused);
  add_node(b.g, "idle", {b.x}, dead);
  remove_dead(b.g);
  sort_topologically(b.g);
  CHECK(names_of(b.g) == std::vector<std::string>{"first", "second"});
  CHECK(b.g.values.size() == 4);
  CHECK(b.g.inputs.size() == 2);
  CHECK_NOTHROW(validate(b.g));
}

TEST_CASE("producers and consumers are found, each once", "[graph]") {
  backwards b;
  b.g.nodes[0].inputs = {b.a, b.a, b.x};
  const adjacency edges = adjacency_of(b.g);
  CHECK(edges.producer[b.x] == -1);
  CHECK(edges.producer[b.a] == 1);
  CHECK(edges.consumers[b.a] == std::vector<node_id>{0});
  CHECK(edges.consumers[b.x] == std::vector<node_id>{0, 1});
  CHECK(edges.is_output[b.y]);
  CHECK_FALSE(edges.is_output[b.a]);
}

TEST_CASE("a value that takes another's place takes its uses", "[graph]") {
  backwards b;
  replace_uses(b.g, b.a, b.x);
  CHECK(b.g.nodes[0].inputs == std::vector<value_id>{b.x});
  replace_uses(b.g, b.y, b.a);
  CHECK(b.g.outputs == std::vector<value_id>{b.a});
}

TEST_CASE("operators outside of the standard say their domain", "[graph]") {
  CHECK(operator_name({.op_type = "Conv"}) == "Conv");
  CHECK(operator_name({.op_type = "Conv", .domain = "troupe"}) == "troupe.Conv");
  CHECK(describe(node{.name = "a\nb", .op_type = "Conv"}) == "Conv 'a\\nb'");
}
