// Operands whose symbolic dims fit each other for some sizes only: an error that names the node, never an answer.
#include "actors/engine_access.hpp"
#include "ops/evaluate.hpp"
#include "ops/graph_hash.hpp"
#include "plan/bind/bound_plan.hpp"
#include "plan/bind/operand_checks.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/run_graph.hpp"
#include "support/sample_calls.hpp"
#include "support/thrown.hpp"

#include <algorithm>
#include <set>

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
  // Relu before and after it: layouts and fusion take part.
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

TEST_CASE("fused attention takes no mask of other sizes than its keys", "[plan][vulkan][A4]") {
  graph_builder b;
  const dim s = dim::symbol("s"), t = dim::symbol("t");
  const value_id q = b.input("q", {1, 2, s, 8}), k = b.input("k", {1, 2, t, 8}), v = b.input("v", {1, 2, t, 8});
  const value_id mask = b.input("mask", {1, 1, 1, m});
  const value_id turned = b.op("Transpose", {k}, attrs_of({{"perm", std::vector<int64_t>{0, 1, 3, 2}}}));
  const value_id scores = b.op("Add", {b.op("Mul", {b.op("MatMul", {q, turned}), b.scalar(0.25f)}), mask});
  const value_id weights = b.op("Softmax", {scores}, attrs_of({{"axis", int64_t{-1}}}), "attended");
  b.output(b.op("MatMul", {weights, v}));
  for (const std::vector<std::string>& devices : std::vector<std::vector<std::string>>{{"cpu"}, {"vulkan:0", "cpu"}}) {
    engine e = make_engine({.devices = devices}, {.gpu_validation = gpus_are_validated()});
    const session loaded = e.load(b.g);
    const auto inputs = [](int64_t keys, int64_t masked) {
      return named_tensors{{"q", ones({1, 2, 3, 8})},
                           {"k", ones({1, 2, keys, 8})},
                           {"v", ones({1, 2, keys, 8})},
                           {"mask", ones({1, 1, 1, masked})}};
    };
    const auto p = plan_of(loaded, inputs(5, 5));
    const auto& nodes = p->program->nodes;
    CHECK(std::ranges::any_of(nodes, [](const node& n) { return operator_name(n) == "troupe.Attention"; }));
    CHECK_NOTHROW(loaded.run(inputs(5, 5)));
    CHECK_NOTHROW(loaded.run(inputs(5, 1)));
    for (const auto& [keys, masked] :
         std::vector<std::pair<int64_t, int64_t>>{{400, 2}, {300'000, 2}, {5, 4}, {5, 6}}) {
      const error why = thrown_by([&] { loaded.run(inputs(keys, masked)); });
      CHECK(why.code() == errc::invalid_input);
      CHECK_THAT(why.what(), Contains("attended") && Contains("the mask of attention") && Contains("'mask'"));
    }
    CHECK(gpu_messages(e).empty());
  }
}

TEST_CASE("a kernel that exceeds the padded input is an error that names the node", "[plan][A4]") {
  engine e({.devices = {"cpu"}});
  for (const std::string op : {"Conv", "MaxPool", "AveragePool"}) {
    INFO(op);
    graph_builder b;
    std::vector<value_id> operands{b.input("x", {1, 2, n, m})};
    attributes attrs;
    if (op == "Conv")
      operands.push_back(b.constant("w", ones({3, 2, 3, 3})));
    else
      attrs.set("kernel_shape", std::vector<int64_t>{3, 3});
    b.output(b.op(op, operands, attrs, "window"));
    const session s = e.load(b.g);
    CHECK(s.run({{"x", ones({1, 2, 3, 4})}}).outputs.begin()->second.size() > 0);
    for (const shape& dims : {shape{1, 2, 2, 4}, shape{1, 2, 4, 2}, shape{1, 2, 0, 4}}) {
      const error why = thrown_by([&] { s.run({{"x", ones(dims)}}); });
      CHECK(why.code() == errc::invalid_input);
      CHECK_THAT(why.what(),
                 Contains("window") && Contains("the kernel covers 3 elements") && Contains("(its inputs: 'x"));
    }
  }
}

TEST_CASE("of layers that ask the same, a binding asks one", "[plan]") {
  graph_builder b;
  value_id x = b.input("x", {n, m});
  const value_id y = b.input("y", {m, m}), bias = b.input("bias", {dim::symbol("k")});
  for (int layer = 0; layer < 3; ++layer)
    x = b.op("PRelu", {b.op("MatMul", {x, y}), bias});
  b.output(x);
  engine e({.devices = {"cpu"}});
  const auto p = plan_of(e.load(b.g, {.fuse = false}), {{"x", ones({3, 4})}, {"y", ones({4, 4})}, {"bias", ones({4})}});
  CHECK(p->open_operands.at(0).size() == 1);
}

TEST_CASE("of layers with constants of equal content, a binding asks one", "[plan][wire]") {
  graph_builder b;
  value_id x = b.input("x", {n, m});
  for (int layer = 0; layer < 3; ++layer)
    x = b.op("PRelu", {x, b.constant("", ones({4}))});
  const auto p = make_plan(b.program({x}), {device_info{.name = "cpu"}}, {});
  CHECK(p->open_operands.at(0).size() == 1);
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

namespace {

/// GatedAdd, which becomes a Mul and an Add: x + y · gate.
value_id gated_add(graph_builder& b, value_id x, value_id y, value_id gate, const std::string& result) {
  b.g.opsets["com.microsoft"] = 1;
  return b.call("GatedAdd", {x, y, gate}, {result}, {}, "com.microsoft")[0];
}

} // namespace

TEST_CASE("what a composition asks of its operands is asked when dims are bound", "[plan][A4]") {
  graph_builder b;
  const value_id x = b.input("x", {n, 4}), y = b.input("y", {m, 4}), gate = b.input("gate", {n, 1});
  for (const char* call : {"first", "second"})
    b.output(b.op("Relu", {gated_add(b, x, y, gate, call)}));
  for (const std::vector<std::string>& devices : std::vector<std::vector<std::string>>{{"cpu"}, {"vulkan:0", "cpu"}}) {
    engine e = make_engine({.devices = devices}, {.gpu_validation = gpus_are_validated()});
    for (const bool fuse : {true, false}) {
      const session s = e.load(b.g, {.fuse = fuse});
      const auto inputs = [](int64_t rows) {
        return named_tensors{{"x", ones({3, 4})}, {"y", ones({rows, 4})}, {"gate", ones({3, 1})}};
      };
      CHECK_NOTHROW(s.run(inputs(3)));
      CHECK(plan_of(s, inputs(3))->open_calls.at(0).size() == 1); // the second asks the same
      const error why = thrown_by([&] { s.run(inputs(1)); });     // the Add broadcasts
      CHECK(why.code() == errc::invalid_input);
      CHECK_THAT(why.what(), Contains("com.microsoft.GatedAdd 'GatedAdd_first'") && Contains("y and x") &&
                                 Contains("(its inputs: 'x' [3, 4], 'y' [1, 4], 'gate' [3, 1])"));
    }
    CHECK(gpu_messages(e).empty());
  }
}

TEST_CASE("a composition of equal symbols, or of numbers, is not asked again", "[plan]") {
  for (const dim& rows : {n, dim(3)}) {
    graph_builder b;
    b.output(gated_add(b, b.input("x", {rows, 4}), b.input("y", {rows, 4}), b.input("gate", {rows, 1}), "call"));
    engine e({.devices = {"cpu"}});
    const auto p = plan_of(e.load(b.g), {{"x", ones({3, 4})}, {"y", ones({3, 4})}, {"gate", ones({3, 1})}});
    CHECK(p->open_calls.at(0).empty());
  }
}

TEST_CASE("a composition is asked in the segment that knows its operands' dims", "[plan]") {
  graph_builder b;
  const value_id found = b.op("NonZero", {b.input("flags", {n})});
  const value_id x = b.op("Cast", {found}, attrs_of({{"to", static_cast<int64_t>(dtype::float32)}}));
  b.output(gated_add(b, x, b.input("y", {1, m}), b.input("gate", {1, 1}), "call"));
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g);
  const auto inputs = [](int64_t columns) {
    return named_tensors{{"flags", ones({3})}, {"y", ones({1, columns})}, {"gate", ones({1, 1})}};
  };
  CHECK_NOTHROW(s.run(inputs(3)));
  const error why = thrown_by([&] { s.run(inputs(1)); });
  CHECK(why.code() == errc::invalid_input);
  CHECK_THAT(why.what(), Contains("GatedAdd 'GatedAdd_call'") && Contains("'y' [1, 1]"));
}

TEST_CASE("a composition in the body of a Loop is asked in each execution", "[plan]") {
  graph_builder b;
  const value_id trips = b.input("trips", {}, dtype::int64), go_on = b.constant("true", tensor::scalar(true));
  const value_id x = b.input("x", {n, 4}), y = b.input("y", {m, 4}), gate = b.input("gate", {n, 1});
  b.output(add_loop(b, "loop", trips, go_on, x, [&](body_builder& body, value_id, value_id go, value_id sum) {
    return std::pair(go, gated_add(body, sum, body.capture(y), body.capture(gate), "call"));
  }));
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g);
  const auto inputs = [](int64_t rows) {
    return named_tensors{
        {"trips", tensor::scalar(int64_t{2})}, {"x", ones({3, 4})}, {"y", ones({rows, 4})}, {"gate", ones({3, 1})}};
  };
  CHECK_NOTHROW(s.run(inputs(3)));
  const error why = thrown_by([&] { s.run(inputs(1)); });
  CHECK(why.code() == errc::invalid_input);
  CHECK_THAT(why.what(), Contains("GatedAdd 'GatedAdd_call'") && Contains("y and x"));
}

TEST_CASE("attention that a model modifies asks the same questions as before it was taken apart", "[plan]") {
  graph_builder b(26);
  b.g.opsets["ai.onnx.preview"] = 1;
  const value_id q = b.input("q", {n, 2, 3, 8}), k = b.input("k", {m, 2, 5, 8}), v = b.input("v", {m, 2, 5, 8});
  body_builder doubled(&b);
  const value_id score = doubled.input("score", {n, 2, 3, 5});
  doubled.output(doubled.op("Add", {score, score}));
  b.output(add_control(b, "FlexAttention", "flex", {q, k, v}, {{"score_mod", &doubled}}, 1)[0]);
  b.g.nodes.back().domain = "ai.onnx.preview";
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g);
  const auto inputs = [](int64_t batch) {
    return named_tensors{{"q", ones({4, 2, 3, 8})}, {"k", ones({batch, 2, 5, 8})}, {"v", ones({batch, 2, 5, 8})}};
  };
  CHECK_NOTHROW(s.run(inputs(4)));
  const error why = thrown_by([&] { s.run(inputs(1)); }); // MatMul broadcasts
  CHECK_THAT(why.what(), Contains("FlexAttention 'flex'") && Contains("batch") && Contains("'k' [1, 2, 5, 8]"));
}

TEST_CASE("questions of compositions are part of a program's hash, but not of its structure", "[plan]") {
  graph_builder b;
  b.output(gated_add(b, b.input("x", {n, 4}), b.input("y", {m, 4}), b.input("gate", {n, 1}), "call"));
  const graph asks = rewrite(b.g, {});
  graph silent = asks;
  silent.asked.reset();
  CHECK(hash_of(asks) != hash_of(silent)); // else a session could take the plan of the other
  CHECK(structure_of(asks) == structure_of(silent));
}

TEST_CASE("zero points, scales and masks of other sizes are refused before anything runs", "[plan][A4]") {
  const std::set<std::string_view> ops{"MatMulInteger", "QLinearMatMul", "ConvInteger", "QLinearConv", "Attention"};
  const auto refuses = [](const auto& work) {
    try {
      work();
      return false;
    } catch (const error&) {
      return true;
    }
  };
  engine e({.devices = {"cpu"}});
  size_t refused = 0;
  for (const sample_call& c : read_sample_calls(false)) {
    if (!c.def->domain.empty() || !ops.contains(c.def->name))
      continue;
    // Of the result of QLinearMatMul only one is supported, where ONNX allows more: that is the kernel's to say.
    const size_t count = c.def->name == "QLinearMatMul" ? 6 : c.inputs.size();
    for (size_t i = 2; i < count; ++i)
      for (size_t axis = 0; c.inputs[i].defined() && axis < c.inputs[i].dims().size(); ++axis) {
        std::vector<symbolic_shape> dims = dims_of(c);
        dims[i][axis] = n;
        named_tensors inputs;
        for (size_t k = 0; k < c.inputs.size(); ++k)
          if (c.inputs[k].defined())
            inputs[fmt::format("x{}", k)] = c.inputs[k];
        const auto p = plan_of(e.load(graph_of(c, dims)), inputs);
        if (symbols_of(*p, 0).empty())
          continue; // weights of a convolution: the session plans for their numbers
        for (const int64_t more : {0, 1, 2}) {
          sample_call other = c;
          shape changed = c.inputs[i].dims();
          changed[axis] += more;
          other.inputs[i] = resized(c.inputs[i], changed);
          INFO(fmt::format("{}: dim {} of input {} is {}", c.name, axis, i, changed[axis]));
          const bool wrong = refuses([&] { evaluate(*c.def, c.attrs, other.inputs, c.outputs); });
          CHECK(refuses([&] { bind_segment(p, 0, {{"n", changed[axis]}}); }) == wrong);
          refused += wrong;
        }
      }
  }
  CHECK(refused > 20);
}
