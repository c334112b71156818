// Parts that are taken of results, taken of operands instead.
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::test;

namespace {

const dim batch = dim::symbol("batch"), seq = dim::symbol("seq");

struct layer : graph_builder {
  value_id weights(const char* name, shape dims) { return constant(name, random_tensor(std::move(dims), 5)); }
  /// A residual layer and a norm over [batch, seq, 8].
  value_id normed(value_id x) {
    const value_id hidden = op("Relu", {op("MatMul", {x, weights("up", {8, 16})})});
    const value_id sum = op("Add", {x, op("MatMul", {hidden, weights("down", {16, 8})})});
    return op("LayerNormalization", {sum, weights("scale", {8}), weights("shift", {8})});
  }
};

/// Returns the numbers of rows that the products of a graph have, in its order.
std::vector<std::string> rows_of_products(const graph& g) {
  std::vector<std::string> rows;
  for (const node& n : g.nodes)
    if (n.op_type == "MatMul")
      rows.push_back((*g.values[n.outputs[0]].dims)[1].to_string());
  return rows;
}

std::vector<tensor> inputs() {
  return {random_tensor({2, 5, 8}, 1)};
}

} // namespace

TEST_CASE("a layer of which one position is read computes that position alone", "[rewrite]") {
  for (const bool last : {false, true}) {
    layer b;
    const value_id y = b.normed(b.input("x", {batch, seq, 8}));
    const value_id picked = last ? b.op("Slice", {y, b.integers({-1}), b.integers({INT64_MAX}), b.integers({1})})
                                 : b.op("Gather", {y, b.integer(0)}, attrs_of({{"axis", int64_t{1}}}));
    b.output(b.op("Relu", {picked}));
    const graph g = check_fusion(b.g, inputs());
    CHECK(rows_of_products(g) == std::vector<std::string>{"1", "1"});
    CHECK(count_nodes(g, "LayerNormalization") == 1);
  }
}

TEST_CASE("a layer that is read elsewhere, or almost whole, stays whole", "[rewrite]") {
  layer read_twice;
  value_id y = read_twice.normed(read_twice.input("x", {batch, seq, 8}));
  read_twice.output(y);
  read_twice.output(read_twice.op("Gather", {y, read_twice.integer(0)}, attrs_of({{"axis", int64_t{1}}})));
  CHECK(rows_of_products(check_fusion(read_twice.g, inputs())) == std::vector<std::string>{"seq", "seq"});
  layer all_but_one;
  y = all_but_one.normed(all_but_one.input("x", {batch, 5, 8}));
  all_but_one.output(
      all_but_one.op("Slice", {y, all_but_one.integers({1}), all_but_one.integers({5}), all_but_one.integers({1})}));
  CHECK(rows_of_products(check_fusion(all_but_one.g, inputs())) == std::vector<std::string>{"5", "5"});
}

TEST_CASE("a part along an axis that a call mixes stays after it", "[rewrite]") {
  layer b;
  const value_id y = b.normed(b.input("x", {batch, seq, 8}));
  b.output(b.op("Slice", {y, b.integers({0}), b.integers({2}), b.integers({2})}));
  const graph g = check_fusion(b.g, inputs());
  CHECK(rows_of_products(g) == std::vector<std::string>{"seq", "seq"});
}

TEST_CASE("an operand that may be repeated along the axis is not taken from", "[rewrite]") {
  graph_builder b;
  const value_id x = b.input("x", {batch, seq, 8}), other = b.input("other", {batch, dim::symbol("one"), 8});
  const value_id product = b.op("MatMul", {x, b.constant("w", random_tensor({8, 8}, 2))});
  const value_id sum = b.op("Mul", {b.op("Add", {product, other}), b.op("Sigmoid", {other})});
  b.output(b.op("Gather", {sum, b.integer(3)}, attrs_of({{"axis", int64_t{1}}})));
  const graph g = check_fusion(b.g, {random_tensor({2, 5, 8}, 1), random_tensor({2, 1, 8}, 2)});
  CHECK(rows_of_products(g) == std::vector<std::string>{"seq"});
}

TEST_CASE("a part is taken before a Resize by scales, which states no sizes", "[rewrite][A4]") {
  layer b;
  const value_id conv = b.op("Conv", {b.input("x", {4, 3, 6, 6}), b.weights("w", {2, 3, 3, 3})});
  const value_id scales = b.constant("scales", floats({4}, {1, 1, 2, 2}));
  const value_id y = b.op("Resize", {conv, no_value, scales});
  b.output(b.op("Slice", {y, b.integers({0}), b.integers({1}), b.integers({0})}));
  const graph g = check_fusion(b.g, {random_tensor({4, 3, 6, 6}, 1)});
  const auto resize = std::ranges::find(g.nodes, "Resize", &node::op_type);
  REQUIRE(resize != g.nodes.end());
  CHECK((*g.values[resize->outputs[0]].dims)[0].is(1));
}
