// Loops that change the rank of what they carry: which iterations go before the loop, and what is left of it.
#include "ops/onnx/control.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// `trips` times: v ← v + 1, where 1 has the dims [1, 1, 1], or one more that the loop carries on.
graph broadening(const std::function<value_id(graph_builder&)>& trips, symbolic_shape start) {
  graph_builder b;
  const value_id n = trips(b), x = b.input("x", std::move(start));
  b.output(add_loop(b, "loop", n, no_value, x, [](body_builder& body, value_id, value_id go, value_id v) {
    return std::pair(go, body.op("Add", {v, body.constant("one", floats({1, 1, 1}, {1}))}));
  }));
  return b.g;
}

value_id given_trips(graph_builder& b) {
  return b.input("n", {}, dtype::int64);
}

/// The branch for one more iteration, of the graph's only If.
const graph& then_of(const graph& g) {
  REQUIRE(count_nodes(g, "If") == 1);
  return *parse_control(*std::ranges::find(g.nodes, "If", &node::op_type)).bodies[then_branch].program;
}

} // namespace

TEST_CASE("an iteration that changes a rank goes before its loop", "[rewrite][control][A14]") {
  const graph g = rewrite(broadening(given_trips, {2, 3}), {.fuse = false});
  CHECK_FALSE(g.values[g.outputs[0]].dims);
  const graph& entered = then_of(g);
  CHECK(entered.values[entered.outputs[0]].dims == symbolic_shape{1, 2, 3});
  CHECK(count_nodes(entered, "Add") == 1);
  CHECK(count_nodes(then_of(entered), "Loop") == 1); // if there is a second iteration
}

TEST_CASE("a loop that is known to have an iteration has a rank", "[rewrite][control][A14]") {
  const auto many = [](graph_builder& b) { return b.constant("n", tensor::scalar(int64_t{100})); };
  const graph g = rewrite(broadening(many, {2, 3}), {.fuse = false});
  CHECK(g.values[g.outputs[0]].dims == symbolic_shape{1, 2, 3});
  CHECK(count_nodes(g, "If") == 0);
  CHECK(count_nodes(g, "Add") == 1);
  CHECK(count_nodes(g, "Loop") == 1);
}

TEST_CASE("an If that always goes the same way changes a rank once or never", "[rewrite][control][A14]") {
  graph_builder b;
  const value_id n = given_trips(b), c = b.input("c", {}, dtype::boolean), x = b.input("x", {2, 1, 4});
  b.output(add_loop(b, "loop", n, no_value, x, [&](body_builder& body, value_id, value_id go, value_id v) {
    body_builder yes(&body), no(&body);
    yes.output(yes.op("Reshape", {yes.capture(v), yes.integers({-1})}));
    no.output(no.op("Neg", {no.capture(v)}));
    const value_id condition = body.capture(c);
    return std::pair(go,
                     add_control(body, "If", "flat", {condition}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0]);
  }));
  const graph g = rewrite(b.g, {.fuse = false});
  CHECK(count_nodes(then_of(g), "If") == 1); // where the first iteration goes; each way keeps its rank from there on
}

TEST_CASE("a loop that keeps ranks stays whole", "[rewrite][control][A14]") {
  const graph g = rewrite(broadening(given_trips, {dim::symbol("a"), 2, 3}), {.fuse = false});
  REQUIRE(g.nodes.size() == 1);
  CHECK(g.nodes[0].op_type == "Loop");
}

TEST_CASE("a loop that changes ranks and carries an optional is refused", "[rewrite][control][A14]") {
  graph_builder b;
  const value_id n = given_trips(b), x = b.input("x", {2, 3}), held = b.input("held", {}, optional_of(dtype::float32));
  body_builder body(&b);
  body.input("i", {}, dtype::int64);
  body.output(body.input("go", {}, dtype::boolean));
  const value_id v = body.g.add_value({.name = "v", .type = dtype::float32});
  body.g.inputs.push_back(v);
  body.output(body.op("Unsqueeze", {v, body.integers({0})}));
  body.output(body.input("o", {}, optional_of(dtype::float32)));
  for (const value_id result : add_control(b, "Loop", "loop", {n, no_value, x, held}, {{"body", &body}}, 2))
    b.output(result);
  const error problem = thrown_by([&] { rewrite(b.g, {}); });
  INFO(problem.what());
  CHECK(problem.code() == errc::unsupported);
  CHECK(std::string(problem.what()).find("its rank must not change") != std::string::npos);
}
