// Angles and masks that language models compute before their first layer: fewer nodes, the same elements.
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Rewrites and requires the elements of the graph as it is, NaN where there is NaN.
graph rewritten(const graph_builder& b, const std::vector<tensor>& inputs, bool fuse = false) {
  graph out = rewrite(b.g, {.fuse = fuse});
  const auto expected = run_graph(inferred(b.g), inputs), actual = run_graph(out, inputs);
  for (size_t k = 0; k < expected.size(); ++k) {
    REQUIRE(expected[k].dims() == actual[k].dims());
    REQUIRE(expected[k].type() == actual[k].type());
    const std::vector<double> want = to_double(expected[k].view()), have = to_double(actual[k].view());
    for (size_t i = 0; i < want.size(); ++i)
      CHECK((std::isnan(want[i]) ? std::isnan(have[i]) : want[i] == have[i] || Approx(want[i]) == have[i]));
  }
  return out;
}

attributes perm(std::vector<int64_t> p) {
  return attrs_of({{"perm", std::move(p)}});
}

attributes along(int64_t axis) {
  return attrs_of({{"axis", axis}});
}

tensor integers(shape dims, int64_t step = 3) {
  tensor t(dtype::int64, std::move(dims));
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<int64_t>()[i] = i * step - 4;
  return t;
}

/// Position ids [1, seq] as Llama's exporter makes angles of them.
value_id angles(graph_builder& b, value_id ids) {
  const value_id positions = b.op("Cast", {b.op("Unsqueeze", {ids, b.integers({1})})}, attrs_of({{"to", int64_t{1}}}));
  const value_id product = b.op("MatMul", {b.constant("frequencies", random_tensor({1, 4, 1}, 3)), positions});
  const value_id turned = b.op("Transpose", {product}, perm({0, 2, 1}));
  return b.op("Concat", {turned, turned}, along(-1));
}

} // namespace

TEST_CASE("a product that sums over one element is a multiplication", "[rewrite]") {
  const auto count = [](symbolic_shape left, symbolic_shape right, const tensor& x, const tensor& y) {
    graph_builder b;
    b.output(b.op("MatMul", {b.input("x", std::move(left), x.type()), b.input("y", std::move(right), y.type())}));
    const graph g = rewritten(b, {x, y});
    CHECK(count_nodes(g, "MatMul") + count_nodes(g, "Mul") == 1);
    return count_nodes(g, "Mul");
  };
  const dim s = dim::symbol("s"), k = dim::symbol("k");
  tensor odd = random_tensor({2, 1, 3, 1}, 1);
  odd.mutable_data<float>()[0] = NAN;
  odd.mutable_data<float>()[1] = INFINITY;
  CHECK(count({2, 1, s, 1}, {4, 1, 5}, odd, floats({4, 1, 5}, std::vector<float>(20, 0))) == 1);
  CHECK(count({3, 1}, {1, s}, integers({3, 1}), integers({1, 4})) == 1);
  CHECK(count({0, 1}, {1, 4}, floats({0, 1}, {}), random_tensor({1, 4}, 1)) == 1);
  CHECK(count({3, k}, {k, 4}, random_tensor({3, 1}, 1), random_tensor({1, 4}, 2)) == 0);
  CHECK(count({3, k}, {1, 4}, random_tensor({3, 1}, 1), random_tensor({1, 4}, 2)) == 0);
  CHECK(count({1}, {1, 4}, random_tensor({1}, 1), random_tensor({1, 4}, 2)) == 0);
}

TEST_CASE("angles are one chain for cosines and one for sines", "[rewrite]") {
  graph_builder b;
  const value_id all = angles(b, b.input("ids", {1, dim::symbol("seq")}, dtype::int64));
  b.output(b.op("Cos", {all}));
  b.output(b.op("Sin", {all}));
  for (const int64_t positions : {1, 3}) {
    const graph g = rewritten(b, {integers({1, positions})}, true);
    for (const char* op : {"MatMul", "Transpose", "Concat", "Mul"})
      CHECK(count_nodes(g, op) == 0);
    CHECK(count_nodes(g, "troupe.Elementwise") == 2);
    CHECK(count_nodes(g, "Cast") == 1);
    CHECK(g.nodes.size() <= 5); // with two views
  }
}

TEST_CASE("an outer product is not made anew for readers that are not chains, or many", "[rewrite]") {
  for (const bool chains : {true, false}) {
    graph_builder b;
    const value_id y = b.op("Mul", {b.input("x", {7, 1}), b.input("y", {1, 6})});
    for (const char* op : {"Cos", "Sin", "Exp", "Tanh"})
      b.output(b.op(op, {y}));
    b.output(chains ? b.op("Sqrt", {b.op("Abs", {y})}) : b.op("Softmax", {y}));
    const graph g = rewritten(b, {random_tensor({7, 1}, 1), random_tensor({1, 6}, 2)}, true);
    CHECK(count_nodes(g, "Mul") == 1);
  }
  graph_builder b; // nor one whose operand is as large
  const value_id y = b.op("Mul", {b.input("x", {7, 6}), b.input("y", {1, 6})});
  b.output(b.op("Cos", {y}));
  b.output(b.op("Sin", {y}));
  CHECK(rewritten(b, {random_tensor({7, 6}, 1), random_tensor({1, 6}, 2)}, true).nodes.size() == 3);
}

TEST_CASE("a transpose goes to constants and to operands that keep their order", "[rewrite]") {
  const auto count = [](value_id (*make)(graph_builder&), const std::vector<tensor>& inputs) {
    graph_builder b;
    const value_id y = make(b);
    b.output(b.op("Relu", {b.op("Transpose", {y}, perm({1, 2, 0}))}));
    return count_nodes(rewritten(b, inputs), "Transpose");
  };
  const std::vector<tensor> row{random_tensor({5}, 1)}, column{random_tensor({3, 1, 1}, 2)},
      both{random_tensor({3, 4, 1}, 1), random_tensor({5}, 2)}, whole{random_tensor({3, 4, 5}, 3)};
  CHECK(count(
            [](auto& b) {
              return b.op("Add", {b.constant("c", random_tensor({3, 4, 1}, 4)), b.input("x", {5})});
            },
            row) == 0);
  CHECK(count(
            [](auto& b) {
              return b.op("Sub", {b.input("x", {3, 1, 1}), b.constant("c", random_tensor({4, 5}, 4))});
            },
            column) == 0);
  CHECK(count(
            [](auto& b) {
              return b.op("Mul", {b.input("x", {dim::symbol("s"), 4, 1}), b.input("y", {5})});
            },
            both) == 1); // x is moved, so that nothing is gained
  CHECK(count([](auto& b) { return b.op("Mul", {b.input("x", {3, 4, 5}), b.scalar(2)}); }, whole) == 1);
  CHECK(count(
            [](auto& b) { // another node reads the value that is transposed
              const value_id y = b.op("Add", {b.constant("c", random_tensor({3, 4, 1}, 4)), b.input("x", {5})});
              b.output(y);
              return y;
            },
            row) == 1);
}

TEST_CASE("a value that is joined to itself is made of constants that are joined to themselves", "[rewrite]") {
  const auto count = [](value_id (*make)(graph_builder&), int64_t axis, int times, const std::vector<tensor>& inputs) {
    graph_builder b;
    const value_id y = make(b);
    b.output(b.op("Relu", {b.op("Concat", std::vector<value_id>(static_cast<size_t>(times), y), along(axis))}));
    return count_nodes(rewritten(b, inputs), "Concat");
  };
  const auto outer = [](graph_builder& b) {
    return b.op("Mul", {b.input("x", {dim::symbol("s"), 1}), b.constant("c", random_tensor({4}, 4))});
  };
  const std::vector<tensor> x{random_tensor({3, 1}, 1)};
  CHECK(count(outer, 1, 2, x) == 0);
  CHECK(count(outer, -1, 3, x) == 0);
  CHECK(count(outer, 0, 2, x) == 1); // x is as long as the result
  CHECK(count([](auto& b) { return b.op("Mul", {b.input("x", {3, 1}), b.scalar(2)}); }, 1, 2, x) == 1);
  CHECK(count([](auto& b) { return b.op("Exp", {b.input("x", {3, 1})}); }, 0, 2, x) == 1);
  CHECK(count(
            [](auto& b) {
              const value_id y = b.op("Mul", {b.input("x", {3, 1}), b.constant("c", random_tensor({4}, 4))});
              b.output(y);
              return y;
            },
            1, 2, x) == 1);
}

TEST_CASE("a range after a past begins there", "[rewrite]") {
  const auto build = [](bool shared, int64_t start) {
    graph_builder b;
    const dim seq = dim::symbol("seq"), past = dim::symbol("past");
    const value_id x = b.input("x", {1, seq}), cache = b.input("cache", {past, 2});
    const auto size = [&](value_id v, int64_t axis) {
      return b.op("Gather", {b.op("Shape", {v}), b.integer(axis)}, along(0));
    };
    const value_id range = b.op("Range", {b.integer(start), size(x, 1), b.integer(1)});
    const value_id apart = b.op("Unsqueeze", {range, b.integers({0, 2})});
    b.output(b.op("Add", {size(cache, 0), apart}));
    if (shared)
      b.output(b.op("Neg", {range}));
    return b;
  };
  const std::vector<tensor> inputs{random_tensor({1, 3}, 1), random_tensor({5, 2}, 2)};
  for (const int64_t start : {0, 2, 7})
    CHECK(count_nodes(rewritten(build(false, start), inputs), "Add") == 0);
  CHECK(count_nodes(rewritten(build(true, 0), inputs), "Add") == 1);
  // Sums that would end beyond int64 wrap as they do.
  CHECK(count_nodes(rewritten(build(false, INT64_MAX - 1), inputs), "Add") == 1);
}

TEST_CASE("adding 0 to integers changes nothing", "[rewrite]") {
  for (const bool floats : {false, true}) {
    graph_builder b;
    const value_id x = b.input("x", {2, 3}, floats ? dtype::float32 : dtype::int64);
    const value_id zero = floats ? b.scalar(0) : b.integer(0);
    b.output(b.op("Abs", {b.op("Add", {zero, x})}));
    const tensor given = floats ? random_tensor({2, 3}, 1) : integers({2, 3});
    CHECK(count_nodes(rewritten(b, {given}), "Add") == (floats ? 1 : 0));
  }
}
