// Parts of outputs in the place of whole ones.
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const dim batch = dim::symbol("batch"), seq = dim::symbol("seq");

/// A layer and a head: tokens of 8 floats, and 12 logits for each.
struct decoder : graph_builder {
  value_id x = input("x", {batch, seq, 8}), logits = no_value;

  decoder() {
    const value_id hidden = op("Relu", {op("MatMul", {x, constant("up", random_tensor({8, 16}, 2))})});
    const value_id sum = op("Add", {x, op("MatMul", {hidden, constant("down", random_tensor({16, 8}, 3))})});
    const value_id normed = op("LayerNormalization", {sum, constant("scale", random_tensor({8}, 4))});
    logits = op("MatMul", {normed, constant("head", random_tensor({8, 12}, 5))}, {}, "logits");
    g.values[logits].type = dtype::float32;
    g.values[logits].dims = symbolic_shape{batch, seq, 12};
    output(logits);
  }
};

} // namespace

TEST_CASE("a part of an output is what a slice of the whole one is, and alone is computed", "[rewrite]") {
  const tensor x = random_tensor({2, 5, 8}, 1);
  const std::vector<float> whole = values_of(run_graph(rewrite(decoder().g, {.fuse = false}), {x}).at(0));
  struct {
    output_slice part;
    int64_t first, end;
    bool alone = false; // its length does not depend on a dim
  } const cases[] = {{{"logits", 1, -1}, 4, 5, true}, {{"logits", -2, 1, 2}, 1, 2}, {{"logits", 1, -4, -2}, 1, 3}};
  for (const auto& [part, first, end, alone] : cases) {
    decoder d;
    slice_outputs(d.g, {&part, 1});
    REQUIRE(d.g.values[d.g.outputs[0]].name == "logits");
    const graph g = check_fusion(d.g, {x});
    for (const node& n : g.nodes)
      if (alone && n.op_type == "MatMul")
        CHECK((*g.values[n.outputs[0]].dims)[1].is(end - first));
    const tensor found = run_graph(g, {x}).at(0);
    REQUIRE(found.dims() == shape{2, end - first, 12});
    const std::vector<float> values = values_of(found);
    const size_t row = 12, rows = static_cast<size_t>(end - first);
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t from = (i / (rows * row) * 5 + static_cast<size_t>(first) + i / row % rows) * row + i % row;
      CHECK(values[i] == Approx(whole[from]).epsilon(1e-4).margin(1e-5));
    }
  }
}

TEST_CASE("parts of one output along several dims, and of an output that is an input", "[rewrite]") {
  decoder d;
  d.output(d.x);
  const output_slice parts[] = {{"logits", 1, -1}, {"logits", 2, 0, 3}, {"x", 0, 1}};
  slice_outputs(d.g, parts);
  const std::vector<tensor> found =
      run_graph(check_fusion(d.g, {random_tensor({2, 5, 8}, 1)}), {random_tensor({2, 5, 8}, 1)});
  CHECK(found.at(0).dims() == shape{2, 1, 3});
  CHECK(found.at(1).dims() == shape{1, 5, 8});
  CHECK(d.g.values[d.g.inputs[0]].name == "x");
}

TEST_CASE("parts of outputs and dims that are not there are refused", "[rewrite]") {
  const auto refused = [](const output_slice& part) {
    decoder d;
    const error problem = thrown_by([&] { slice_outputs(d.g, {&part, 1}); });
    CHECK(problem.code() == errc::invalid_argument);
    return std::string(problem.what());
  };
  CHECK_THAT(refused({"hidden", 0}), Catch::Contains("no output 'hidden'"));
  CHECK_THAT(refused({"logits", 3}), Catch::Contains("along dim 3: its shape is [batch, seq, 12]"));
  CHECK_THAT(refused({"logits", -4}), Catch::Contains("along dim -4"));
  decoder open;
  open.g.values[open.logits].dims.reset();
  const output_slice part{"logits", 1};
  CHECK(thrown_by([&] { slice_outputs(open.g, {&part, 1}); }).code() == errc::invalid_argument);
}
