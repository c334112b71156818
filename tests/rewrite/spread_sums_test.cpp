// Constants added to a Concat that are added to its inputs instead: the same results, fewer nodes, on GPUs alone and
// only where products take them in.
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t columns = 6, patches = 5;

/// A token before patches, and positions of all, with the changes that a test makes to them.
struct tokens {
  dim batch = 1;
  int64_t axis = 1;
  bool biased = true, constant_first = false, token_given = false, patches_kept = false, cat_read = false;
  bool activated = false; // the product, before the Concat
  shape positions{1, patches + 1, columns};
  bool for_gpus = true;

  graph rewritten() const {
    graph_builder b;
    const value_id x = b.input("x", {batch, dim(patches), dim(8)});
    value_id y = b.op("MatMul", {x, b.constant("w", random_tensor({8, columns}, 1))});
    if (biased)
      y = b.op("Add", {y, b.constant("b", random_tensor({columns}, 2))});
    if (activated)
      y = b.op("Relu", {y});
    const value_id token =
        token_given ? b.input("t", {1, 1, columns}) : b.constant("t", random_tensor({1, 1, columns}, 3));
    const value_id cat = b.op("Concat", {token, y}, attrs_of({{"axis", axis}}));
    const value_id p = b.constant("p", random_tensor(positions, 4));
    b.output(b.op("Add", constant_first ? std::vector{p, cat} : std::vector{cat, p}));
    if (patches_kept)
      b.output(b.op("Abs", {y}));
    if (cat_read)
      b.output(b.op("Abs", {cat}));
    std::vector<tensor> inputs{random_tensor({1, patches, 8}, 5)};
    if (token_given)
      inputs.push_back(random_tensor({1, 1, columns}, 6));
    return check_fusion(b.g, inputs, 1e-5, for_gpus);
  }

  /// Whether the product takes the positions in: nothing else is left than that and the Concat.
  bool spreads() const {
    const graph g = rewritten();
    const bool sum = count_nodes(g, "Add") + count_nodes(g, "troupe.Elementwise") == 0;
    if (sum) {
      CHECK(g.nodes.size() == 2);
      CHECK(count_nodes(g, "troupe.MatMul") == 1);
      CHECK(count_nodes(g, "Concat") == 1);
    }
    return sum;
  }
};

} // namespace

TEST_CASE("positions are added where tokens and patches are made", "[rewrite]") {
  for (const bool biased : {false, true})
    for (const int64_t axis : {1, -2})
      for (const bool constant_first : {false, true})
        CHECK(tokens{.axis = axis, .biased = biased, .constant_first = constant_first}.spreads());
}

TEST_CASE("a sum after a Concat stays where not all inputs take it in", "[rewrite]") {
  CHECK_FALSE(tokens{.token_given = true}.spreads());
  CHECK_FALSE(tokens{.activated = true}.spreads());
  CHECK_FALSE(tokens{.patches_kept = true}.spreads());
  CHECK_FALSE(tokens{.cat_read = true}.spreads());
  CHECK_FALSE(tokens{.positions = {columns}}.spreads());
  CHECK_FALSE(tokens{.for_gpus = false}.spreads());
}

TEST_CASE("two products beside each other take in their parts of a sum, if they do not write the Concat", "[rewrite]") {
  const bool constant = GENERATE(true, false);
  graph_builder b;
  const value_id x = b.input("x", {3, 8}), c = b.constant("c", random_tensor({3, 4}, 1));
  const value_id left = b.op("MatMul", {x, b.constant("v", random_tensor({8, 5}, 2))});
  const value_id right = b.op("MatMul", {x, b.constant("w", random_tensor({8, 7}, 3))});
  const std::vector<value_id> parts = constant ? std::vector{left, c, right} : std::vector{left, right};
  const value_id cat = b.op("Concat", parts, attrs_of({{"axis", int64_t{-1}}}));
  b.output(b.op("Add", {cat, b.constant("p", random_tensor({3, constant ? 16 : 12}, 4))}));
  const graph g = check_fusion(b.g, {random_tensor({3, 8}, 5)}, 1e-5, true);
  CHECK(count_nodes(g, "troupe.MatMul") == (constant ? 2 : 0));
  CHECK(count_nodes(g, "Add") == (constant ? 0 : 1));
}
