#include "ops/conformance_case.hpp"
#include "plan/graphs.hpp"
#include "plan/saved_plan.hpp"
#include "plan/show/annotate.hpp"
#include "plan/show/print.hpp"
#include "plan/split/split.hpp"
#include "support/catch.hpp"
#include "support/dice.hpp"
#include "support/run_graph.hpp"
#include "support/verify_memory.hpp"

using namespace troupe;
using namespace troupe::testing;
using troupe::test::attrs_of;

namespace {

const plan_options by_split{.policy = placement_policy::split};

split_team team_of(std::vector<int64_t> begin) {
  split_team team{{}, std::move(begin)};
  for (device_index d = 0; d + 1 < team.begin.size(); ++d)
    team.devices.push_back(d);
  return team;
}

const std::vector<split_team> teams{team_of({0, 32, 64}), team_of({0, 40, 64}), team_of({0, 20, 48, 64})};

/// A layer of a transformer: norm, projections, attention by two heads, a sum, two products. `length` is that of x.
value_id layer(graph_builder& b, value_id x, const dim& length, test::dice& random) {
  constexpr int64_t width = 16, half = width / 2;
  const auto weights = [&](shape dims) {
    const tensor drawn = test::random_tensor(dims, static_cast<uint32_t>(random.below(1 << 30)));
    std::vector<float> small;
    for (const float w : drawn.values<float>())
      small.push_back(w / 4);
    return b.constant("", test::floats(std::move(dims), small));
  };
  const auto permuted = [&](value_id v, std::vector<int64_t> perm) {
    return b.op("Transpose", {v}, attrs_of({{"perm", std::move(perm)}}));
  };
  const value_id norm = b.op("LayerNormalization", {x, weights({width})});
  const auto heads = [&](std::vector<int64_t> perm) {
    const value_id all = b.op("MatMul", {norm, weights({width, width})});
    return permuted(b.op("Reshape", {all, b.known({4}, {2, length, 2, half})}), std::move(perm));
  };
  const value_id q = heads({0, 2, 1, 3}), k = heads({0, 2, 3, 1}), v = heads({0, 2, 1, 3});
  const value_id scores = b.op("Softmax", {b.op("MatMul", {q, k})}, attrs_of({{"axis", int64_t{-1}}}));
  const value_id mixed = permuted(b.op("MatMul", {scores, v}), {0, 2, 1, 3});
  const value_id joined = b.op("Reshape", {mixed, b.known({3}, {2, length, width})});
  const value_id sum = b.op("Add", {x, b.op("MatMul", {joined, weights({width, width})})});
  const value_id wide = b.op("Relu", {b.op("MatMul", {sum, weights({width, 2 * width})})});
  return b.op("Add", {sum, b.op("MatMul", {wide, weights({2 * width, width})})});
}

std::shared_ptr<const graph> transformer(const dim& length) {
  graph_builder b;
  test::dice random(7);
  value_id x = b.input("x", {2, length, 16});
  for (int i = 0; i < 2; ++i)
    x = layer(b, x, length, random);
  return b.program({x, b.op("ReduceSum", {x, b.integers({1})})});
}

/// Convolutions and pooling with windows of several kinds, a residual sum, a concatenation, a mean at the end.
std::shared_ptr<const graph> images(const dim& height, int64_t width) {
  graph_builder b;
  uint32_t seed = 3;
  const auto weights = [&](shape dims) { return b.constant("", test::random_tensor(std::move(dims), ++seed)); };
  const auto conv = [&](value_id v, shape w, attributes attrs) {
    return b.op("Conv", {v, weights(std::move(w))}, std::move(attrs));
  };
  const value_id x = b.input("x", {1, 3, height, width});
  const value_id first = b.op(
      "Relu", {conv(x, {8, 3, 3, 3},
                    attrs_of({{"pads", std::vector<int64_t>{1, 1, 1, 1}}, {"strides", std::vector<int64_t>{2, 2}}}))});
  const value_id second = conv(first, {8, 8, 5, 5}, attrs_of({{"pads", std::vector<int64_t>{2, 2, 2, 2}}}));
  const value_id sum = b.op("Add", {first, second});
  const value_id pooled =
      b.op("MaxPool", {sum},
           attrs_of({{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}}));
  const value_id both = b.op("Concat", {pooled, conv(pooled, {4, 8, 1, 1}, {})}, attrs_of({{"axis", int64_t{1}}}));
  const value_id last =
      conv(both, {4, 12, 3, 3},
           attrs_of({{"pads", std::vector<int64_t>{2, 2, 2, 2}}, {"dilations", std::vector<int64_t>{2, 2}}}));
  return b.program({last, b.op("GlobalAveragePool", {last})});
}

/// Runs a split program and the whole one by reference kernels on inputs of these dims; returns the number of cut
/// nodes, 0 if nothing can be cut.
size_t check_split(const std::shared_ptr<const graph>& whole, const split_team& team, int along, const shape& dims,
                   const bindings& values = {}) {
  const auto made =
      split(*whole, cpus(team.size()), {.policy = placement_policy::split, .expected = values}, team, along);
  if (!made)
    return 0;
  for (const dim& d : made->nonnegative)
    REQUIRE(d.evaluate(values) >= 0);
  const std::vector<tensor> inputs{test::random_tensor(dims, 11)};
  const auto expected = test::run_graph(*whole, inputs), got = test::run_graph(made->program, inputs);
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("output " << i << " along " << along << " for " << team.size());
    CHECK(testing::difference(got[i], expected[i], 1e-4, 1e-4) == "");
  }
  const auto is_part = [](const node& n) { return n.name.find("/part_0") != std::string::npos; };
  return static_cast<size_t>(std::ranges::count_if(made->program.nodes, is_part));
}

} // namespace

TEST_CASE("a transformer computes the same cut along any dim", "[plan][split]") {
  const auto g = transformer(19);
  for (const split_team& team : teams) {
    CHECK(check_split(g, team, -1, {2, 19, 16}) > 20);
    CHECK(check_split(g, team, 1, {2, 19, 16}) > 20);
    CHECK(check_split(g, team, 2, {2, 19, 16}) > 8);
    CHECK(check_split(g, team, 5, {2, 19, 16}) == 0);
  }
}

TEST_CASE("images computed in strips exchange what windows need", "[plan][split]") {
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{64, 24}, {37, 41}, {101, 16}})
    for (const split_team& team : teams) {
      const auto g = images(height, width);
      CHECK(check_split(g, team, 2, {1, 3, height, width}) > 6);
      for (const int along : {1, 3}) // 8 channels and 16 columns are too few for three
        CHECK((check_split(g, team, along, {1, 3, height, width}) > 0 || team.size() > 2));
      CHECK(check_split(g, team, -1, {1, 3, height, width}) > 6);
    }
}

TEST_CASE("strips of images whose height is a symbol exchange what windows need", "[plan][split]") {
  const auto g = images(dim::symbol("height"), 24);
  for (const split_team& team : teams)
    for (const int64_t height : {128, 200})
      CHECK(check_split(g, team, 2, {1, 3, height, 24}, {{"height", height}}) > 6);
}

TEST_CASE("unlike devices go by the same ranks and masks", "[plan][split]") {
  graph_builder b;
  const value_id x = b.input("x", {8, 64}), w = b.constant("w", test::random_tensor({64, 64}, 5));
  const value_id best = b.op("ArgMax", {b.op("Reshape", {x, b.integers({1, 512})})},
                             attrs_of({{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}));
  const value_id ranks = b.op("Cast", {best}, attrs_of({{"to", int64_t{1}}}));
  const auto g = b.program({b.op("MatMul", {b.op("Add", {b.op("MatMul", {x, w}), ranks}), w})});
  std::vector<device_info> devices = cpus(2);
  const auto count = [&](const char* op) {
    const auto made = split(*g, devices, by_split, teams[0], 0);
    REQUIRE(made);
    return std::ranges::count(made->program.nodes, op, &node::op_type);
  };
  CHECK(count("MatMul") == 4);
  CHECK(count("ArgMax") == 2);
  devices[1].description = "another processor";
  CHECK(count("MatMul") == 4);
  CHECK(count("ArgMax") == 1);
  CHECK(count("Cast") == 2);
}

TEST_CASE("a split says what is in parts, and what can only run once", "[plan][split]") {
  graph_builder b;
  const value_id x = b.input("x", {64, 64}), w = b.constant("w", test::random_tensor({64, 64}, 5));
  const value_id noise = b.op("RandomUniformLike", {x}, {}, "noise");
  const auto g = b.program({b.op("Add", {b.op("MatMul", {x, w}), noise})});
  const auto made = split(*g, cpus(2), by_split, teams[0], 0);
  REQUIRE(made);
  CHECK_THAT(made->summary, Catch::Contains("values in parts: 1 along dim 0") &&
                                Catch::Contains("only once: RandomUniformLike") &&
                                Catch::Contains("(draws random numbers)"));
}

TEST_CASE("symbolic dims are cut once for all values that leave parts long enough", "[plan][split]") {
  const dim length = dim::symbol("length");
  for (const split_team& team : teams)
    for (const int64_t n : {40, 41, 99})
      CHECK(check_split(transformer(length), team, 1, {2, n, 16}, {{"length", n}}) > 20);
}

TEST_CASE("a plan that is split says when it does not hold", "[plan][split]") {
  plan_options options = by_split;
  options.split_along = 1;
  options.expected = {{"length", 256}};
  const auto p = make_plan(transformer(dim::symbol("length")), cpus(2), options);
  verify(*p);
  REQUIRE(p->split);
  CHECK(is_for(*p, {{"length", 256}}));
  CHECK_FALSE(is_for(*p, {{"length", 1}}));
  test::verify_memory(*bind_segment(p, 0, {{"length", 200}}));
}

TEST_CASE("an operand whose dim may turn out to be 1 is not cut there", "[plan][split]") {
  graph_builder b;
  const auto rows = [&](const char* name) { return b.input(name, {dim::symbol(name), 64}); };
  const auto g = b.program({b.op("Pow", {rows("N"), rows("M")})});
  plan_options options = by_split;
  options.split_along = 0;
  options.expected = {{"N", 64}, {"M", 64}};
  const auto p = make_plan(g, cpus(2), options);
  REQUIRE(p->split);
  CHECK(is_for(*p, {{"N", 64}, {"M", 64}}));
  CHECK_FALSE(is_for(*p, {{"N", 64}, {"M", 1}}));
  CHECK_FALSE(is_for(*p, {{"N", 1}, {"M", 64}}));
}

TEST_CASE("a split plan is made again from its JSON form", "[plan][split]") {
  plan_options options = by_split;
  options.split_along = 1;
  const auto g = transformer(64);
  const auto p = make_plan(g, cpus(3), options);
  plan_options again;
  again.saved = parse_saved_plan(to_json(*p), "the file");
  const auto q = make_plan(g, cpus(3), again);
  CHECK(q->program->nodes.size() == p->program->nodes.size());
  CHECK(q->chunks.size() == p->chunks.size());
  CHECK(q->transfers == p->transfers);
  again.saved = parse_saved_plan(to_json(*p), "the file");
  CHECK_THROWS_WITH(make_plan(g, cpus(2), again), Catch::Contains("'cpu#2', which is not open"));
}

TEST_CASE("a split plan is found again from annotations that state its parts", "[plan][split][annotations]") {
  for (const int along : {-1, 0, 1, 2})
    for (const auto& g : {transformer(64), images(64, 24)}) {
      plan_options options = by_split;
      options.split_along = along;
      const auto p = make_plan(g, cpus(2), options);
      graph annotated = *g;
      annotated.annotations =
          std::make_shared<const model_annotations>(model_annotations{{annotations_of(*p)}, {1, 2}});
      const auto q = make_plan(std::make_shared<const graph>(annotated), cpus(2), by_split);
      INFO("along " << along);
      REQUIRE(q->split.has_value() == p->split.has_value());
      CHECK(q->program->nodes.size() == p->program->nodes.size());
      CHECK(q->placement == p->placement);
      CHECK(q->transfers == p->transfers);
    }
}

TEST_CASE("shardings are for the configuration's devices, and for no others", "[plan][split][annotations]") {
  graph g = *transformer(64);
  device_configuration c{.name = "pair", .count = 3, .team = {0, 2}};
  c.add({.shardings = {{g.values[g.nodes[1].outputs[0]].name, 1}}}, g.nodes[1].name, {});
  g.annotations = std::make_shared<const model_annotations>(model_annotations{{c}, {1, 2}});
  const auto whole = std::make_shared<const graph>(std::move(g));
  const auto p = make_plan(whole, cpus(3), by_split);
  REQUIRE(p->split);
  CHECK(p->split->team == std::vector<std::string>{"cpu#0", "cpu#2"});
  CHECK(p->split->along == along_annotations);
  CHECK_FALSE(make_plan(whole, cpus(2), {})->split);
}
