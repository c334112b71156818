// Clean-up: nodes that the rewrite removes, merges and keeps, fusion aside.
#include "ops/registry.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

#include <chrono>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Rewrites without fusion, checks the result against the unrewritten graph, and returns it.
graph clean(const graph& g, const std::vector<tensor>& inputs) {
  graph out = rewrite(g, {.fuse = false});
  const auto expected = run_graph(inferred(g), inputs), actual = run_graph(out, inputs);
  REQUIRE(expected.size() == actual.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    CHECK(out.values[out.outputs[k]].name == g.values[g.outputs[k]].name);
    REQUIRE(expected[k].dims() == actual[k].dims());
    CHECK(to_double(expected[k].view()) == to_double(actual[k].view()));
  }
  return out;
}

attributes perm(std::vector<int64_t> p) {
  return attrs_of({{"perm", std::move(p)}});
}

} // namespace

TEST_CASE("nodes that change nothing go", "[rewrite]") {
  graph_builder b;
  value_id x = b.input("x", {2, 3, 4});
  x = b.op("Identity", {x});
  x = b.op("Dropout", {x});
  x = b.op("Cast", {x}, attrs_of({{"to", int64_t{1}}}));
  x = b.op("Reshape", {x, b.integers({2, -1, 4})});
  x = b.op("Transpose", {x}, perm({0, 1, 2}));
  x = b.op("Slice", {x, b.integers({0}), b.integers({INT64_MAX}), b.integers({1}), b.integers({1})});
  x = b.op("Concat", {x}, attrs_of({{"axis", int64_t{0}}}));
  x = b.op("Expand", {x, b.integers({2, 3, 4})});
  x = b.op("Pad", {x, b.integers({0, 0, 0, 0, 0, 0})});
  x = b.op("Sub", {b.op("Div", {b.op("Pow", {x, b.scalar(1)}), b.scalar(1)}), b.scalar(0)});
  x = b.op("Mul", {b.scalar(1), b.op("Sum", {x})});
  b.output(b.op("Relu", {x}));
  const graph out = clean(b.g, {random_tensor({2, 3, 4}, 1)});
  CHECK(out.nodes.size() == 1);
}

TEST_CASE("nodes that look like no-ops but are not stay", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {1, 4}), wide = b.input("wide", {3, 1});
  b.output(
      b.op("Slice", {x, b.integers({-1}), b.integers({INT64_MIN}), b.integers({1}), b.integers({-1})}));  // reverses
  b.output(b.op("Mul", {x, b.constant("ones", tensor::of<float>({3, 1}, std::vector<float>{1, 1, 1}))})); // broadcasts
  b.output(b.op("Add", {x, b.scalar(0)})); // turns −0 into 0
  b.output(b.op("Expand", {wide, b.integers({3, 2})}));
  b.output(b.op("Pad", {x, b.integers({0, 1, 0, -1})})); // moves
  b.output(b.op("Sub", {b.scalar(0), x}));
  CHECK(clean(b.g, {random_tensor({1, 4}, 1), random_tensor({3, 1}, 2)}).nodes.size() == 6);
}

TEST_CASE("every graph output keeps its name and a producer of its own", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {3});
  const value_id y = b.op("Relu", {x}, {}, "y");
  b.output(x);                              // an input
  b.output(y);                              //
  b.output(b.op("Identity", {y}, {}, "z")); // another output
  b.output(b.constant("c", random_tensor({2}, 1)));
  b.output(b.op("Shape", {x}, {}, "s")); // known
  const graph out = clean(b.g, {random_tensor({3}, 1)});
  CHECK(count_nodes(out, "Relu") == 1);
  CHECK(count_nodes(out, "Identity") == 4);
  const adjacency a = adjacency_of(out);
  for (value_id v : out.outputs)
    CHECK(a.producer[v] >= 0);
}

TEST_CASE("an Identity in front of an output hands its name to the producer", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {3});
  const value_id y = b.op("Relu", {x});
  b.output(b.op("Identity", {y}, {}, "out"));
  b.output(b.op("Sigmoid", {y}, {}, "other"));
  CHECK(clean(b.g, {random_tensor({3}, 1)}).nodes.size() == 2);
}

TEST_CASE("shape arithmetic vanishes, symbolic or not", "[rewrite][A4]") {
  graph_builder b;
  const value_id x = b.input("x", {dim::symbol("batch"), 6, 4});
  const value_id shape = b.op("Shape", {x});
  const value_id batch =
      b.op("Unsqueeze", {b.op("Gather", {shape, b.constant("i", tensor::scalar<int64_t>(0))}), b.integers({0})});
  const value_id target = b.op("Concat", {batch, b.integers({3, -1})}, attrs_of({{"axis", int64_t{0}}}));
  b.output(b.op("Reshape", {b.op("Relu", {x}), target}));
  const graph out = clean(b.g, {random_tensor({5, 6, 4}, 1)});
  REQUIRE(out.nodes.size() == 2);
  CHECK(out.values[out.nodes[1].inputs[1]].known);
}

TEST_CASE("views merge into one Reshape, transposes cancel", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {2, 1, 6});
  value_id y = b.op("Flatten", {b.op("Unsqueeze", {b.op("Squeeze", {x, b.integers({1})}), b.integers({0})})});
  b.output(b.op("Relu", {b.op("Reshape", {y, b.integers({3, 4})})}));
  const value_id z = b.input("z", {2, 3, 4});
  y = b.op("Transpose", {b.op("Transpose", {z}, perm({1, 2, 0}))}, perm({2, 0, 1}));
  b.output(b.op("Relu", {y}));
  const graph out = clean(b.g, {random_tensor({2, 1, 6}, 1), random_tensor({2, 3, 4}, 2)});
  CHECK(count_nodes(out, "Reshape") == 1);
  CHECK(count_nodes(out, "Transpose") == 0);
  CHECK(out.nodes.size() == 3);
}

TEST_CASE("transposes move through elementwise nodes if one goes away", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {2, 3, 4}), y = b.input("y", {2, 3, 4});
  const value_id sum = b.op("Add", {b.op("Transpose", {x}, perm({2, 0, 1})), b.op("Transpose", {y}, perm({2, 0, 1}))});
  const value_id back = b.op("Transpose", {b.op("Mul", {b.op("Round", {sum}), b.scalar(2)})}, perm({1, 2, 0}));
  b.output(b.op("Relu", {back}));
  const graph out = clean(b.g, {random_tensor({2, 3, 4}, 1), random_tensor({2, 3, 4}, 2)});
  CHECK(count_nodes(out, "Transpose") == 0);
}

TEST_CASE("one index of a transposed value is picked before the transpose", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {1, 7, 1, 3, 8}); // as torchvision's attention splits Q, K and V
  const value_id t = b.op("Squeeze", {b.op("Transpose", {x}, perm({3, 1, 2, 0, 4})), b.integers({-2})});
  for (int64_t i = 0; i < 3; ++i)
    b.output(b.op("Relu", {b.op("Gather", {t, b.constant("i" + std::to_string(i), tensor::scalar<int64_t>(i))})}));
  const graph out = clean(b.g, {random_tensor({1, 7, 1, 3, 8}, 1)});
  CHECK(count_nodes(out, "Transpose") == 0);
  CHECK(count_nodes(out, "Gather") == 3);
}

TEST_CASE("a node that defines a data-dependent dim stays while the dim is used", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {4});
  const value_id found = b.op("NonZero", {x}), again = b.op("NonZero", {x});
  const value_id count = b.op("Gather", {b.op("Shape", {again}), b.integers({1})});
  b.output(b.op("Expand", {b.scalar(1), count}, {}, "ones"));
  b.output(b.op("Identity", {found}, {}, "found"));
  std::vector<float> values{1, 0, 2, 3};
  const graph out = rewrite(b.g, {});
  const auto results = run_graph(out, {tensor::of<float>({4}, values)});
  CHECK(results[0].dims() == shape{3});
  CHECK(results[1].dims() == shape{1, 3});
}

TEST_CASE("inputs that decide shapes are found, and become constants", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {2, 6}), s = b.input("s", {3}, dtype::int64),
                 big = b.input("big", {4000}, dtype::int64);
  const value_id target = b.op("Mul", {s, b.integers({1})});
  b.output(b.op("Reshape", {b.op("Relu", {x}), target}));
  b.output(b.op("Relu", {b.op("Cast", {big}, attrs_of({{"to", int64_t{1}}}))}));
  resolve(b.g);
  CHECK(host_inputs_of(b.g) == std::vector<std::string>{"s"});
  CHECK(count_nodes(rewrite(b.g, {}), "troupe.Deferred") == 1); // without the input: when it is there
  const tensor shape_value = tensor::of<int64_t>({3}, std::vector<int64_t>{3, 2, 2});
  const graph out = rewrite(b.g, {.constant_inputs = {{"s", shape_value}}});
  CHECK(out.inputs.size() == 2);
  CHECK(to_string(*out.values[out.outputs[0]].dims) == "[3, 2, 2]");
  CHECK_THROWS_AS(rewrite(b.g, {.constant_inputs = {{"s", tensor::scalar<int64_t>(3)}}}), error);
  CHECK_THROWS_AS(rewrite(b.g, {.constant_inputs = {{"nope", shape_value}}}), error);
}

TEST_CASE("parts of a large constant are computed later, each of as many as the node has", "[rewrite]") {
  const tensor w = random_tensor({768, 96}, 1); // each part is too large to be computed at once
  const auto parts_of = [&](int64_t opset, std::vector<int64_t> sizes, attributes attrs, bool wants_all) {
    graph_builder b(opset);
    const value_id whole = b.constant("w", w);
    std::vector<value_id> inputs{whole};
    if (!sizes.empty())
      inputs.push_back(b.integers(sizes));
    const auto parts = b.call("Split", inputs, {"a", "b", "c"}, std::move(attrs));
    const value_id x = b.input("x", {5, 768});
    const value_id all = b.op("MatMul", {x, whole}); // a reader of the whole
    b.output(b.op("Add", {all, b.op("ReduceSum", {parts[1]})}));
    if (wants_all)
      for (const value_id part : {parts[0], parts[2]})
        b.output(b.op("Neg", {part}));
    return check_fusion(b.g, {random_tensor({5, 768}, 2)});
  };
  for (const bool wants_all : {false, true}) {
    CHECK(count_nodes(parts_of(17, {}, {}, wants_all), "Split") == 0);
    CHECK(count_nodes(parts_of(17, {256, 300, 212}, {}, wants_all), "Split") == 0);
    CHECK(count_nodes(parts_of(18, {}, attrs_of({{"num_outputs", int64_t{3}}}), wants_all), "Split") == 0);
  }
}

TEST_CASE("a Transpose moves over a sum with a large constant", "[rewrite]") {
  constexpr int64_t n = 1100; // more elements than are moved while rewriting
  for (const char* op : {"Add", "Mul"})
    for (const bool left : {false, true}) {
      graph_builder b;
      const value_id a = b.input("a", left ? symbolic_shape{1, n} : symbolic_shape{n, 1}),
                     c = b.constant("c", random_tensor(left ? shape{n, 1} : shape{1, n}, 1));
      b.output(b.op("Transpose", {b.op(op, left ? std::vector{c, a} : std::vector{a, c})},
                    attrs_of({{"perm", std::vector<int64_t>{1, 0}}})));
      const graph out = check_fusion(b.g, {random_tensor(left ? shape{1, n} : shape{n, 1}, 2)});
      CHECK(count_nodes(out, "Transpose") == 0);
    }
}

TEST_CASE("rewriting is near-linear", "[rewrite]") {
  const auto rewrite_ms = [](int n) {
    graph_builder b;
    const value_id x = b.input("x", {4});
    value_id v = x;
    for (int i = 0; i < n; ++i)
      v = b.op(i % 3 == 0 ? "Identity" : "Add",
               i % 3 == 0 ? std::vector{v} : std::vector{v, i % 3 == 1 ? x : b.scalar(1)});
    b.output(v);
    const auto start = std::chrono::steady_clock::now();
    rewrite(b.g, {});
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  rewrite_ms(2000);
  const double small = rewrite_ms(2000), large = rewrite_ms(16000);
  CHECK(large < 40 * small + 50); // 8 times the nodes; quadratic time would be 64 times
}

TEST_CASE("an output of another type than the model declares is refused", "[rewrite]") {
  graph_builder b;
  const value_id y = b.op("Relu", {b.input({4})}, {}, "y");
  b.output(y);
  b.g.values[y].type = dtype::int64;
  const error e = thrown_by([&] { rewrite(b.g, {}); });
  CHECK(e.code() == errc::invalid_model);
  CHECK(std::string(e.what()).find("'y' is declared as int64, but the model computes float32") != std::string::npos);
  b.g.values[y].type = dtype::undefined;
  CHECK(rewrite(b.g, {}).outputs.size() == 1);
}
