// Which nodes must wait for which: through data, through bytes that are used again, through control flow; and graphs in
// which nodes wait for each other in a circle.
#include "loader/models.hpp"
#include "plan/graphs.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/verify_memory.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using test::add_control;
using test::body_builder;
using test::error_of;

namespace {

/// Returns the chunk of the node that makes a value.
chunk_id chunk_making(const plan& p, const std::string& value) {
  for (chunk_id c = 0; c < p.chunks.size(); ++c)
    for (node_id n : p.chunks[c].nodes)
      for (value_id v : p.program->nodes[n].outputs)
        if (p.program->values[v].name == value)
          return c;
  FAIL("no chunk makes '" << value << "'");
  return 0;
}

/// Whether chunk `later` can only start when `earlier` has ended, directly or through others.
bool waits_for(const plan& p, chunk_id later, chunk_id earlier) {
  const auto& before = p.chunks[later].predecessors;
  return std::any_of(before.begin(), before.end(),
                     [&](chunk_id c) { return c == earlier || waits_for(p, c, earlier); });
}

/// x → condition; x → read by a branch; both → If → a reader.
graph a_choice() {
  graph_builder b;
  const value_id x = b.input("x", {4});
  const value_id condition = b.op(
      "Greater", {b.op("ReduceMax", {x}, test::attrs_of({{"keepdims", int64_t{0}}})), b.scalar(0)}, {}, "condition");
  const value_id captured = b.op("Sigmoid", {x}, {}, "captured");
  body_builder yes(&b), no(&b);
  yes.output(yes.op("Relu", {yes.capture(captured)}));
  no.output(no.op("Neg", {no.capture(x)}));
  const value_id chosen =
      add_control(b, "If", "choice", {condition}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0];
  b.output(b.op("Abs", {chosen}, {}, "reader"));
  return b.g;
}

} // namespace

TEST_CASE("control flow waits for its condition and for values that its bodies read, its readers for it",
          "[engine][control][C5]") {
  for (const size_t devices : {1, 3}) {
    engine e({.devices = {fmt::format("null*{}", devices)}});
    const auto p = plan_of(e.load(a_choice(), {.policy = placement_policy::round_robin, .fuse = false}),
                           {{"x", test::floats({4}, {1, 2, 3, 4})}});
    verify(*p);
    const chunk_id choice = chunk_making(*p, "choice.0");
    CHECK(p->chunks[choice].nodes.size() == 1);
    for (const char* before : {"condition", "captured"}) {
      INFO(before << ", " << devices << " devices");
      CHECK(waits_for(*p, choice, chunk_making(*p, before)));
    }
    CHECK(waits_for(*p, chunk_making(*p, "reader"), choice));
    CHECK_FALSE(waits_for(*p, choice, chunk_making(*p, "reader")));
  }
}

TEST_CASE("a reader on each device waits for the writer, and no reader for another", "[plan][C5]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id made = b.node(plain_op, {in}, {4});
  std::vector<value_id> read;
  for (int i = 0; i < 3; ++i)
    read.push_back(b.node(plain_op, {made}, {4}));
  const auto p = make_plan(b.done(read), cpus(4), {.policy = placement_policy::round_robin});
  REQUIRE(p->chunks.size() == 4);
  const chunk_id writer = chunk_making(*p, b.name(made));
  for (value_id v : read) {
    const chunk_id reader = chunk_making(*p, b.name(v));
    CHECK(p->chunks[reader].predecessors == std::vector<chunk_id>{writer});
  }
}

TEST_CASE("a node that overwrites a value waits for all its readers", "[plan][C5]") {
  // On a GPU the nodes of a wave run at once: a node that writes in place, or into bytes that are free again, comes in
  // a later one.
  graph_builder b;
  const value_id in = b.input({64});
  const value_id a = b.node(plain_op, {in}, {64});
  const value_id reader = b.node(plain_op, {a}, {64});
  const value_id other_reader = b.node(plain_op, {a}, {64});
  const value_id overwriter = b.node(in_place_op, {a, reader, other_reader}, {64});
  const value_id end = b.node(plain_op, {overwriter}, {64});
  const auto p = make_plan(b.done({end}), gpus(1), {});
  const auto bound = bind_segment(p, 0, {});
  const auto& offset = bound->layout->memory[0].offset;
  CHECK(offset[overwriter] == offset[a]); // else there is nothing to wait for
  test::verify_memory(*bound);
  REQUIRE(p->chunks.size() == 1);
  const chunk& c = p->chunks[0];
  std::map<value_id, size_t> wave;
  for (size_t w = 0; w + 1 < c.wave_begin.size(); ++w)
    for (uint32_t at = c.wave_begin[w]; at < c.wave_begin[w + 1]; ++at)
      wave[p->program->nodes[c.nodes[at]].outputs[0]] = w;
  CHECK(wave[reader] > wave[a]);
  CHECK(wave[other_reader] == wave[reader]);
  CHECK(wave[overwriter] > wave[reader]);
  CHECK(wave[end] > wave[overwriter]);
}

TEST_CASE("a circle is reported by the nodes on it, not by those that wait for it", "[plan][C5][D8]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id back = b.value({4});
  const value_id before = b.node(plain_op, {in}, {4}); // n0, leads to it
  const value_id first = b.node(plain_op, {before, back}, {4});
  const value_id second = b.node(plain_op, {first}, {4});
  b.node_to(plain_op, {second}, back);
  const value_id after = b.node(plain_op, {second}, {4}); // n4, waits for it
  try {
    make_plan(b.done({after}), cpus(1), {});
    FAIL("it was planned");
  } catch (const error& e) {
    CHECK(e.code() == errc::invalid_model);
    CHECK_THAT(e.what(), Contains("cycle") && Contains("test.plain 'n1', test.plain 'n2', test.plain 'n3'") ||
                             Contains("test.plain 'n2', test.plain 'n3', test.plain 'n1'") ||
                             Contains("test.plain 'n3', test.plain 'n1', test.plain 'n2'"));
    CHECK_THAT(e.what(), !Contains("'n0'") && !Contains("'n4'"));
  }
}

TEST_CASE("a circle through a value that a body reads is one", "[plan][control][C5][D8]") {
  graph_builder b;
  const value_id x = b.input("x", {4});
  const value_id a = b.op("Add", {x, x}, {}, "a");
  body_builder yes(&b), no(&b);
  yes.output(yes.op("Relu", {yes.capture(a)}));
  no.output(no.op("Neg", {no.capture(x)}));
  const value_id chosen = add_control(b, "If", "choice", {b.input("go", {}, dtype::boolean)},
                                      {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0];
  b.g.nodes[0].inputs[1] = chosen; // which is made from `a`
  b.output(chosen);
  CHECK_THROWS_WITH(sort_topologically(b.g), Contains("cycle") && Contains("Add 'Add_a'") && Contains("If 'choice'"));
}

TEST_CASE("a model whose nodes need each other is refused with the circle", "[loader][C5][D8]") {
  onnx::ModelProto m = test::relu_model();
  auto& g = *m.mutable_graph();
  g.mutable_node(0)->set_output(0, "before");
  const std::pair<const char*, const char*> circle[] = {{"three", "one"}, {"one", "two"}, {"two", "three"}};
  for (const auto& [needed, name] : circle)
    test::add_node(g, "Add", {"before", needed}, {name}).set_name(name);
  test::add_node(g, "Relu", {"two"}, {"y"}).set_name("after");
  const std::string problem = error_of([&] { test::load(m); });
  CHECK_THAT(problem, Contains("Add 'one', Add 'two', Add 'three'") || Contains("Add 'two', Add 'three', Add 'one'") ||
                          Contains("Add 'three', Add 'one', Add 'two'"));
  CHECK_THAT(problem, !Contains("after"));
}
