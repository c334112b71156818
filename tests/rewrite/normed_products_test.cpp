// Norms that become the end of the product before them (troupe.Projections): as the parts on random data, for GPUs
// alone.
#include "ops/composed/projections.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t hidden = 24;

value_id rows_of(graph_builder& b) {
  return b.input("x", {dim(1), dim::symbol("seq"), hidden});
}

tensor rows() {
  return random_tensor({1, 3, hidden}, 1);
}

value_id weights(graph_builder& b, const std::string& name) {
  return b.constant(name, random_tensor({hidden, hidden}, static_cast<uint32_t>(name.size())));
}

value_id norm(graph_builder& b, value_id x, bool centred = true) {
  std::vector<value_id> operands{x, b.constant("scale", random_tensor({hidden}, 2))};
  if (centred)
    operands.push_back(b.constant("shift", random_tensor({hidden}, 3)));
  return b.op(centred ? "LayerNormalization" : "RMSNormalization", operands, attrs_of({{"epsilon", 1e-3f}}));
}

const node& projections_in(const graph& g) {
  const auto n = std::ranges::find(g.nodes, "Projections", &node::op_type);
  REQUIRE(n != g.nodes.end());
  return *n;
}

graph joined(const graph_builder& b, const std::vector<tensor>& inputs) {
  return check_fusion(b.g, inputs, 1e-3, true);
}

/// Rows after rows with a product back to them and a residual.
value_id added_product(graph_builder& b, value_id x, const std::string& name) {
  const value_id y = b.op("MatMul", {x, weights(b, name)});
  return b.op("Add", {x, b.op("Add", {y, b.constant(name + ".bias", random_tensor({hidden}, 7))})}, {}, name + ".sum");
}

} // namespace

TEST_CASE("a norm that is left over is the end of the product before it", "[rewrite][projections]") {
  for (const bool known : {false, true})
    for (const bool centred : {false, true})
      for (const bool read : {false, true}) {
        INFO(known << centred << read);
        graph_builder b(23);
        const value_id x = known ? b.input("x", {dim(1), 20, hidden}) : rows_of(b);
        const value_id sum = added_product(b, x, "w"), y = norm(b, sum, centred);
        b.output(b.op("Tanh", {y}));
        if (read)
          b.output(b.op("Abs", {sum}));
        const graph g = joined(b, {known ? random_tensor({1, 20, hidden}, 1) : rows()});
        REQUIRE(count_nodes(g, "troupe.Projections") == 1);
        CHECK(count_nodes(g, "troupe.MatMul") == 0);
        const node& n = projections_in(g);
        CHECK(n.outputs.size() == (read ? 2 : 1));
        CHECK(n.attrs.text("last_norm", "") == (centred ? "LayerNormalization" : "RMSNormalization"));
        CHECK(n.attrs.real("epsilon.last_norm") == Approx(1e-3));
        CHECK(n.inputs.size() == projection::last_scale + (centred ? 2 : 1));
      }
}

TEST_CASE("sums that are results stay results when their norm joins the product", "[rewrite][projections]") {
  graph_builder b;
  const value_id sum = added_product(b, rows_of(b), "w"), y = norm(b, sum);
  b.output(sum);
  b.output(y);
  const graph g = joined(b, {rows()});
  REQUIRE(g.nodes.size() == 1);
  CHECK(projections_in(g).outputs == std::vector<value_id>{g.outputs[1], g.outputs[0]});
}

TEST_CASE("a norm before products is theirs, and no end of the product before it", "[rewrite][projections]") {
  graph_builder b;
  const value_id sum = added_product(b, rows_of(b), "w"), y = norm(b, sum);
  b.output(b.op("Add", {sum, b.op("MatMul", {y, weights(b, "w2")})}));
  const graph g = joined(b, {rows()});
  CHECK(count_nodes(g, "troupe.MatMul") == 1);
  REQUIRE(count_nodes(g, "troupe.Projections") == 1);
  CHECK(projections_in(g).attrs.has("norm"));
  CHECK_FALSE(projections_in(g).attrs.has("last_norm"));
}

TEST_CASE("norms of other axes, of sums of nothing constant, and on CPUs stay nodes", "[rewrite][projections]") {
  const auto norms = [](bool for_gpus, int64_t axis, bool given) {
    graph_builder b;
    const value_id x = b.input("x", {dim(1), 20, hidden});
    const value_id w = given ? b.input("w", {hidden, hidden}) : weights(b, "w");
    const value_id y = b.op("Relu", {b.op("MatMul", {x, w})});
    const shape vector = axis == 1 ? shape{20, hidden} : shape{hidden};
    b.output(b.op("LayerNormalization", {y, b.constant("s", random_tensor(vector, 2))}, attrs_of({{"axis", axis}})));
    std::vector<tensor> inputs{random_tensor({1, 20, hidden}, 1)};
    if (given)
      inputs.push_back(random_tensor({hidden, hidden}, 2));
    return count_nodes(check_fusion(b.g, inputs, 1e-3, for_gpus), "LayerNormalization");
  };
  CHECK(norms(true, -1, false) == 0);
  CHECK(norms(true, 1, false) == 1);
  CHECK(norms(true, -1, true) == 1);
  CHECK(norms(false, -1, false) == 1);
}

TEST_CASE("a norm after a product is computed in float16 with it", "[rewrite][projections]") {
  graph_builder b;
  const value_id sum = added_product(b, rows_of(b), "w");
  b.output(norm(b, sum));
  b.output(b.op("Tanh", {sum}));
  const graph g = rewrite(b.g, {.fuse = true, .precision = precision::fp16, .for_gpus = true});
  const node& n = projections_in(g);
  CHECK_FALSE(n.attrs.has("wide"));
  for (const value_id v : n.outputs)
    CHECK(g.values[v].type == dtype::float16);
}

TEST_CASE("the norms of exported language models that add first end the product before them",
          "[rewrite][projections]") {
  for (const bool centred : {false, true}) {
    graph_builder b;
    b.g.opsets["com.microsoft"] = 1;
    const value_id x = rows_of(b), y = b.op("MatMul", {x, weights(b, "w")});
    std::vector<value_id> operands{y, x, b.constant("scale", random_tensor({hidden}, 2))};
    if (centred)
      operands.push_back(b.constant("shift", random_tensor({hidden}, 3)));
    b.output(b.call(centred ? "SkipLayerNormalization" : "SkipSimplifiedLayerNormalization", operands, {"y"},
                    attrs_of({{"epsilon", 1e-3f}}), "com.microsoft")[0]);
    const graph g = joined(b, {rows()});
    REQUIRE(g.nodes.size() == 1);
    CHECK(projections_in(g).attrs.text("last_norm", "") == (centred ? "LayerNormalization" : "RMSNormalization"));
  }
}
