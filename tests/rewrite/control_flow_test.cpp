// Control flow in the rewrite: branches and loops that are known beforehand go, bodies that stay are rewritten.
#include "ops/onnx/control.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

value_id truth(graph_builder& b, bool value) {
  return b.constant("t" + std::to_string(b.g.values.size()), tensor::scalar(value));
}

value_id count(graph_builder& b, int64_t value) {
  return b.constant("n" + std::to_string(b.g.values.size()), tensor::scalar(value));
}

/// If `condition` then x + 1 else relu(x); a graph output.
void add_choice(graph_builder& b, value_id condition, value_id x) {
  body_builder yes(&b), no(&b);
  yes.output(yes.op("Add", {yes.capture(x), yes.scalar(1)}, {}, "yes"));
  no.output(no.op("Relu", {no.capture(x)}, {}, "no"));
  b.output(add_control(b, "If", "choice", {condition}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0]);
}

/// x doubled `trips` times.
graph doubling(value_id (*trips)(graph_builder&)) {
  graph_builder b;
  const value_id x = b.input("x", {2});
  const value_id n = trips(b);
  b.output(add_loop(b, "loop", n, no_value, x, [](body_builder& body, value_id, value_id go, value_id v) {
    return std::pair(body.op("Identity", {go}), body.op("Add", {v, v}));
  }));
  return b.g;
}

void check_refused(const graph& g, errc code, const std::string& words) {
  const error problem = thrown_by([&] { rewrite(g, {}); });
  INFO(problem.what());
  CHECK(problem.code() == code);
  CHECK(std::string(problem.what()).find(words) != std::string::npos);
}

const node& only_control(const graph& g) {
  const node* found = nullptr;
  for (const node& n : g.nodes)
    if (has_body(n)) {
      REQUIRE(!found);
      found = &n;
    }
  REQUIRE(found);
  return *found;
}

} // namespace

TEST_CASE("a branch whose condition is known takes the place of its If", "[rewrite][control][A14]") {
  for (const bool condition : {true, false}) {
    graph_builder b;
    add_choice(b, truth(b, condition), b.input("x", {3}));
    const graph g = rewrite(b.g, {.fuse = false});
    CHECK(count_nodes(g, "If") == 0);
    CHECK(count_nodes(g, condition ? "Add" : "Relu") == 1);
    const auto y = run_graph(g, {tensor::of<float>({3}, std::vector<float>{-1, 0, 2})});
    CHECK(y[0].data<float>()[0] == 0);
    CHECK(y[0].data<float>()[2] == (condition ? 3 : 2));
  }
}

TEST_CASE("an If whose condition is not known stays, its branches are rewritten", "[rewrite][control][A14]") {
  graph_builder b;
  const value_id c = b.input("c", {}, dtype::boolean), x = b.input("x", {dim::symbol("n")});
  add_choice(b, c, x);
  const graph g = rewrite(b.g, {});
  const node& choice = only_control(g);
  CHECK(g.values[choice.outputs[0]].dims == symbolic_shape{dim::symbol("n")});
  const control_call call = parse_control(choice);
  for (const node_body& body : call.bodies) {
    CHECK(body.program->nodes.size() == 1);
    CHECK(body.program->captured.size() == 1);
    CHECK(body.program->values[body.program->captured[0]].dims == symbolic_shape{dim::symbol("n")});
  }
}

TEST_CASE("loops of few known iterations are unrolled, nested ones too", "[rewrite][control][D2]") {
  const graph flat = rewrite(doubling([](graph_builder& b) { return count(b, 5); }), {.fuse = false});
  CHECK(count_nodes(flat, "Loop") == 0);
  CHECK(count_nodes(flat, "Add") == 5);
  CHECK(run_graph(flat, {tensor::of<float>({2}, std::vector<float>{1, -3})})[0].data<float>()[1] == -96);

  graph_builder b;
  const value_id n = count(b, 3), x = b.input("x", {2});
  b.output(add_loop(b, "outer", n, no_value, x, [](body_builder& outer, value_id, value_id go, value_id v) {
    const value_id m = count(outer, 4);
    const value_id y = add_loop(outer, "inner", m, go, v, [](body_builder& inner, value_id, value_id on, value_id w) {
      return std::pair(on, inner.op("Add", {w, w}));
    });
    return std::pair(go, y);
  }));
  const graph nested = rewrite(b.g, {.fuse = false});
  CHECK(count_nodes(nested, "Loop") == 0);
  CHECK(count_nodes(nested, "Add") == 12);
  CHECK(run_graph(nested, {tensor::of<float>({2}, std::vector<float>{1, 2})})[0].data<float>()[1] == 8192);
}

TEST_CASE("a loop's iteration number has the dims that the body states", "[rewrite][control]") {
  for (const int64_t trips : {3, 65}) // unrolled, and as a loop
    for (const bool stated : {false, true}) {
      graph_builder b;
      body_builder body(&b);
      const value_id i = body.input("i", stated ? symbolic_shape{1} : symbolic_shape{}, dtype::int64);
      body.output(body.input("go", {}, dtype::boolean));
      body.output(body.op("Cast", {i}, attrs_of({{"to", int64_t{1}}})));
      b.output(add_control(b, "Loop", "loop", {count(b, trips), truth(b, true)}, {{"body", &body}}, 1)[0]);
      const graph g = rewrite(b.g, {.fuse = false});
      CHECK(g.values[g.outputs[0]].dims == (stated ? symbolic_shape{trips, 1} : symbolic_shape{trips}));
    }
}

TEST_CASE("long loops and loops of unknown length stay", "[rewrite][control][D2]") {
  CHECK(count_nodes(rewrite(doubling([](graph_builder& b) { return count(b, 65); }), {}), "Loop") == 1);
  CHECK(count_nodes(rewrite(doubling([](graph_builder& b) { return count(b, 0); }), {}), "Loop") == 1);
  CHECK(count_nodes(rewrite(doubling([](graph_builder& b) { return b.input("n", {}, dtype::int64); }), {}), "Loop") ==
        1);
}

TEST_CASE("a carried dim that grows depends on data outside and is a symbol inside", "[rewrite][control][A14]") {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {1, 3});
  b.output(add_loop(b, "loop", n, no_value, x, [&](body_builder& body, value_id, value_id go, value_id v) {
    return std::pair(go, body.op("Concat", {v, body.capture(x)}, attrs_of({{"axis", int64_t{0}}})));
  }));
  const graph g = rewrite(b.g, {});
  const node& loop = only_control(g);
  const symbolic_shape& dims = *g.values[loop.outputs[0]].dims;
  CHECK(dims[0].depends_on_data());
  CHECK(dims[1].is(3));
  const node_body body = bodies_of(loop).front();
  const value& carried = body.program->values[body.program->inputs[2]];
  CHECK_FALSE((*carried.dims)[0].is_constant());
  CHECK_FALSE(carried.dims->front().depends_on_data());
  CHECK((*carried.dims)[1].is(3));
}

TEST_CASE("captured constants are constants of the body, and nothing is captured in vain", "[rewrite][control][A14]") {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {4}), unused = b.input("unused", {4});
  const value_id two = b.op("Add", {b.scalar(1), b.scalar(1)});
  b.output(add_loop(b, "loop", n, no_value, x, [&](body_builder& body, value_id, value_id go, value_id v) {
    body.capture(unused);
    return std::pair(go, body.op("Mul", {v, body.capture(two)}));
  }));
  const graph g = rewrite(b.g, {.fuse = false});
  const node& loop = only_control(g);
  CHECK(loop.captures == 0);
  CHECK(loop.inputs.size() == 3);
}

TEST_CASE("bodies whose inputs or outputs do not fit their node are refused by name", "[rewrite][control][D2]") {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), c = b.input("c", {}, dtype::boolean), x = b.input("x", {4});
  SECTION("arity of inputs") {
    body_builder body(&b);
    body.output(body.input("i", {}, dtype::int64));
    add_control(b, "Loop", "bad", {n, c, x}, {{"body", &body}}, 1);
    b.output(b.g.nodes.back().outputs[0]);
    check_refused(b.g, errc::invalid_model, "Loop 'bad': body 'body' has 1 inputs, but the node needs 3");
  }
  SECTION("arity of outputs") {
    body_builder yes(&b), no(&b);
    yes.output(yes.capture(x));
    b.output(add_control(b, "If", "bad", {c}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0]);
    check_refused(b.g, errc::invalid_model, "If 'bad': body 'else_branch' has 0 outputs, but the node needs 1");
  }
  SECTION("a missing branch") {
    body_builder yes(&b);
    yes.output(yes.capture(x));
    b.output(add_control(b, "If", "bad", {c}, {{"then_branch", &yes}}, 1)[0]);
    check_refused(b.g, errc::invalid_model, "If 'bad': attribute 'else_branch' is missing");
  }
}

TEST_CASE("bodies whose types do not fit are refused by name", "[rewrite][control][D2]") {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), c = b.input("c", {}, dtype::boolean), x = b.input("x", {4});
  SECTION("types of branches") {
    body_builder yes(&b), no(&b);
    yes.output(yes.capture(x));
    no.output(no.op("Cast", {no.capture(x)}, attrs_of({{"to", static_cast<int64_t>(dtype::int32)}})));
    b.output(add_control(b, "If", "bad", {c}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0]);
    check_refused(b.g, errc::invalid_model, "If 'bad': output 0 is float32 in then_branch");
  }
  SECTION("types of carried values") {
    b.output(add_loop(b, "bad", n, c, x, [](body_builder& body, value_id, value_id go, value_id v) {
      return std::pair(go, body.op("Cast", {v}, attrs_of({{"to", static_cast<int64_t>(dtype::int32)}})));
    }));
    check_refused(b.g, errc::invalid_model, "Loop 'bad': carried value 0 is float32 ('bad.x'), but int32");
  }
  SECTION("a condition that is none") {
    b.output(
        add_loop(b, "bad", n, c, x, [](body_builder&, value_id i, value_id, value_id v) { return std::pair(i, v); }));
    check_refused(b.g, errc::invalid_model,
                  "Loop 'bad': output 'bad.i' of body 'body' is the condition, but it is int64");
  }
  SECTION("an inner loop of an outer one") {
    b.output(add_loop(b, "outer", n, c, x, [](body_builder& outer, value_id i, value_id go, value_id v) {
      const value_id y = add_loop(outer, "inner", i, go, v,
                                  [](body_builder&, value_id, value_id, value_id w) { return std::pair(w, w); });
      return std::pair(go, y);
    }));
    check_refused(b.g, errc::invalid_model, "Loop 'outer': Loop 'inner': output 'inner.x'");
  }
}

TEST_CASE("control flow nested too deep is refused", "[rewrite][control][D2]") {
  graph_builder b;
  const value_id c = b.input("c", {}, dtype::boolean), x = b.input("x", {4});
  std::function<value_id(graph_builder&, value_id, value_id, int)> nest = [&](graph_builder& around, value_id condition,
                                                                              value_id v, int depth) {
    if (depth == 0)
      return around.op("Relu", {v});
    body_builder yes(&around), no(&around);
    const value_id inner = yes.capture(v);
    const value_id inner_condition =
        yes.op("Cast", {yes.op("ReduceMax", {inner}, attrs_of({{"keepdims", int64_t{0}}}))},
               attrs_of({{"to", static_cast<int64_t>(dtype::boolean)}}));
    yes.output(nest(yes, inner_condition, inner, depth - 1));
    no.output(no.capture(v));
    return add_control(around, "If", "if" + std::to_string(depth), {condition},
                       {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0];
  };
  graph_builder shallow = b;
  shallow.output(nest(shallow, c, x, 20));
  CHECK(rewrite(shallow.g, {}).nodes.size() == 1);
  b.output(nest(b, c, x, 40));
  const error problem = thrown_by([&] { rewrite(b.g, {}); });
  CHECK(problem.code() == errc::unsupported);
  CHECK(std::string(problem.what()).find("nested more than 32 levels deep") != std::string::npos);
}
