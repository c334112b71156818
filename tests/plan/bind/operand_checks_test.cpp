// Operands whose symbolic dims fit each other for some sizes only: an error that names the node, never an answer.
#include "actors/engine_access.hpp"
#include "plan/bind/operand_checks.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

const dim n = dim::symbol("n"), m = dim::symbol("m");

tensor ones(shape dims) {
  return tensor::of<float>(dims, std::vector<float>(static_cast<size_t>(volume(dims)), 1));
}

/// A call "call" of x, whose dims have the symbol n, and y, whose dims have m.
graph two_inputs(const std::string& op, symbolic_shape x, symbolic_shape y, attributes attrs = {}) {
  graph_builder b;
  // Relu before and behind: layouts and fusion take part.
  const value_id left = b.op("Relu", {b.input("x", std::move(x))}), right = b.op("Relu", {b.input("y", std::move(y))});
  b.output(b.op("Relu", {b.op(op, {left, right}, std::move(attrs), "call")}));
  return b.g;
}

struct mismatch {
  graph model;
  std::pair<shape, shape> fits, differs; // dims of x and y
};

std::vector<mismatch> mismatches() {
  const attributes axis_1 = attrs_of({{"axis", int64_t{1}}});
  return {
      {two_inputs("MatMul", {4, n}, {m, 3}), {{4, 5}, {5, 3}}, {{4, 5}, {6, 3}}},
      {two_inputs("Gemm", {4, n}, {m, 3}), {{4, 5}, {5, 3}}, {{4, 5}, {6, 3}}},
      {two_inputs("Concat", {1, 2, n, 4}, {1, 2, m, 4}, axis_1),
       {{1, 2, 5, 4}, {1, 2, 5, 4}},
       {{1, 2, 5, 4}, {1, 2, 4, 4}}},
      {two_inputs("Conv", {1, n, 6, 6}, {8, 4, 3, 3}), {{1, 4, 6, 6}, {8, 4, 3, 3}}, {{1, 3, 6, 6}, {8, 4, 3, 3}}},
      {two_inputs("Add", {4, n}, {4, m}), {{4, 5}, {4, 5}}, {{4, 5}, {4, 3}}},
      {two_inputs("PRelu", {4, n}, {m}), {{4, 5}, {5}}, {{4, 5}, {3}}},
  };
}

named_tensors inputs_of(const std::pair<shape, shape>& dims) {
  return {{"x", ones(dims.first)}, {"y", ones(dims.second)}};
}

} // namespace

TEST_CASE("operands that do not fit are refused on every device", "[plan][vulkan][A4]") {
  for (const std::vector<std::string>& devices : std::vector<std::vector<std::string>>{{"cpu"}, {"vulkan:0", "cpu"}}) {
    engine e = make_engine({.devices = devices}, {.gpu_validation = gpus_are_validated()});
    for (const mismatch& c : mismatches())
      for (const bool fuse : {true, false}) {
        const session s = e.load(c.model, {.fuse = fuse});
        INFO(devices.front() << ", " << c.model.nodes[2].op_type << ", fused " << fuse);
        CHECK_NOTHROW(s.run(inputs_of(c.fits)));
        const error why = thrown_by([&] { s.run(inputs_of(c.differs)); });
        CHECK(why.code() == errc::invalid_input);
        CHECK_NOTHROW(s.run(inputs_of(c.fits)));
      }
    CHECK(gpu_messages(e).empty());
  }
}

TEST_CASE("a binding asks only nodes whose operands may not fit", "[plan][engine]") {
  graph_builder b;
  const value_id x = b.input("x", {n, 4}), y = b.input("y", {m, 4});
  const value_id square = b.op("MatMul", {x, b.op("Transpose", {x})}, {}, "proven");
  b.output(b.op("MatMul", {square, y}, {}, "open"));
  b.output(b.op("Add", {x, b.constant("row", ones({4}))}, {}, "broadcast"));
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g, {.fuse = false});
  const named_tensors inputs{{"x", ones({3, 4})}, {"y", ones({3, 4})}};
  const auto p = plan_of(s, inputs);
  std::vector<std::string> names;
  for (const node_id id : p->open_operands.at(0))
    names.push_back(p->program->nodes[id].name);
  CHECK(names == std::vector<std::string>{"MatMul_open"});
  const error why = thrown_by([&] { check_operands(*p, 0, {{"n", 3}, {"m", 5}}); });
  CHECK_THAT(why.what(), Contains("inner dims of the product: 3 and 5 differ"));
  CHECK_NOTHROW(check_operands(*p, 0, {{"n", 5}, {"m", 5}}));
}
