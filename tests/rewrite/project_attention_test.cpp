// The product after attention becomes part of it: which patterns do, which do not, and that results are the same.
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t heads = 3, width = 8, columns = 10;

/// The difference from a decoder's layer.
enum class variation : uint8_t { none, heads_read_again, sums_read_again, computed_matrix, many_rows, one_position };

/// Attention of [1, seq, heads, width] over [1, heads, past, width], and the product of its heads with bias and
/// residual.
graph layer(variation what) {
  graph_builder b;
  const bool one = what == variation::one_position;
  const dim s = what == variation::many_rows ? dim(40) : one ? dim(1) : dim::symbol("seq");
  const dim past = dim::symbol("past");
  const value_id q = b.input("q", {1, s, heads, width}), k = b.input("k", {1, heads, past, width}),
                 v = b.input("v", {1, heads, past, width});
  const auto transpose = [&](value_id x, std::vector<int64_t> perm) {
    return b.op("Transpose", {x}, attrs_of({{"perm", std::move(perm)}}));
  };
  const value_id scores = b.op("MatMul", {transpose(q, {0, 2, 1, 3}), transpose(k, {0, 1, 3, 2})});
  const value_id p = b.op("Softmax", {scores}, attrs_of({{"axis", int64_t{-1}}}));
  const value_id y = transpose(b.op("MatMul", {p, v}), {0, 2, 1, 3});
  if (what == variation::heads_read_again)
    b.output(b.op("Neg", {y}));
  const value_id rows = b.op("Reshape", {y, b.integers({0, 0, heads * width})});
  const value_id w = what == variation::computed_matrix ? b.input("w", {heads * width, columns})
                                                        : b.constant("w", random_tensor({heads * width, columns}, 4));
  const value_id product = b.op("MatMul", {rows, w});
  if (what == variation::sums_read_again)
    b.output(b.op("Neg", {product}));
  const value_id biased = b.op("Add", {product, b.constant("bias", random_tensor({columns}, 5))});
  b.output(b.op("Add", {biased, b.input("residual", {1, s, columns})}));
  return b.g;
}

/// The rewritten layer, whose results are as the plain one's.
graph fused(variation what) {
  const int64_t s = what == variation::many_rows ? 40 : what == variation::one_position ? 1 : 2;
  std::vector<tensor> inputs{random_tensor({1, s, heads, width}, 1), random_tensor({1, heads, 6, width}, 2),
                             random_tensor({1, heads, 6, width}, 3)};
  if (what == variation::computed_matrix)
    inputs.push_back(random_tensor({heads * width, columns}, 6));
  inputs.push_back(random_tensor({1, s, columns}, 7));
  return check_fusion(layer(what), inputs, 1e-4, true);
}

} // namespace

TEST_CASE("the product of all heads becomes part of attention, with bias and residual", "[rewrite][attention]") {
  const graph g = fused(variation::none);
  REQUIRE(g.nodes.size() == 1);
  CHECK(count_nodes(g, "troupe.AttentionProjection") == 1);
  CHECK(g.nodes[0].inputs.size() == 9);
}

TEST_CASE("heads of one position are projected in either order", "[rewrite][attention]") {
  CHECK(count_nodes(fused(variation::one_position), "troupe.AttentionProjection") == 1);
}

TEST_CASE("a product whose sums other nodes read is projected without the nodes after it", "[rewrite][attention]") {
  const graph g = fused(variation::sums_read_again);
  CHECK(count_nodes(g, "troupe.AttentionProjection") == 1);
  CHECK(g.nodes.size() > 1);
}

TEST_CASE("attention stays apart from products that are not alone, constant and of few rows", "[rewrite][attention]") {
  for (const variation what : {variation::heads_read_again, variation::computed_matrix, variation::many_rows}) {
    const graph g = fused(what);
    CHECK(count_nodes(g, "troupe.AttentionProjection") == 0);
    CHECK(count_nodes(g, "troupe.Attention") == 1);
  }
}
