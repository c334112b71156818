#include "actors/engine_access.hpp"
#include "loader/onnx_loader.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "rewrite/rewrite.hpp"
#include "support/cached_decoder.hpp"
#include "support/catch.hpp"
#include "support/places.hpp"
#include "support/run_graph.hpp"

#include <cmath>
#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

tensor zeros(dtype type, shape dims) {
  tensor t(type, std::move(dims));
  std::fill_n(t.mutable_data<char>(), t.bytes(), '\0');
  return t;
}

/// √(Σ(a − b)²/Σb²) over all outputs.
double relative_l2(const std::vector<tensor>& got, const std::vector<tensor>& want) {
  double error = 0, norm = 0;
  REQUIRE(got.size() == want.size());
  for (size_t k = 0; k < got.size(); ++k) {
    REQUIRE(got[k].type() == want[k].type());
    REQUIRE(got[k].dims() == want[k].dims());
    const auto a = to_double(got[k].view()), b = to_double(want[k].view());
    for (size_t i = 0; i < a.size(); ++i) {
      error += (a[i] - b[i]) * (a[i] - b[i]);
      norm += b[i] * b[i];
    }
  }
  return std::sqrt(error / norm);
}

struct both {
  graph full, half;
};

/// Rewrites in both precisions and requires close results and the same interface.
both check_precision(const graph& g, const std::vector<tensor>& inputs, bool fuse = true) {
  both r{rewrite(g, {.fuse = fuse}), rewrite(g, {.fuse = fuse, .precision = precision::fp16})};
  for (auto ends : {&graph::inputs, &graph::outputs}) {
    REQUIRE((r.full.*ends).size() == (r.half.*ends).size());
    for (size_t i = 0; i < (r.full.*ends).size(); ++i) {
      const value &a = r.full.values[(r.full.*ends)[i]], &b = r.half.values[(r.half.*ends)[i]];
      CHECK(a.name == b.name);
      CHECK(a.type == b.type);
      CHECK(a.dims == b.dims);
    }
  }
  CHECK(r.full.opsets == r.half.opsets);
  const double error = relative_l2(run_graph(r.half, inputs), run_graph(r.full, inputs));
  CHECK(error <= 1e-2);
  return r;
}

/// Types of the first inputs and outputs of all nodes called `op`.
std::vector<dtype> input_types(const graph& g, std::string_view op) {
  std::vector<dtype> types;
  for (const node& n : g.nodes)
    if (n.op_type == op)
      types.push_back(g.values[n.inputs[0]].type);
  return types;
}

using all = std::vector<dtype>;

} // namespace

TEST_CASE("weights and activations become float16 between one conversion at each end", "[rewrite]") {
  for (const bool fuse : {false, true}) {
    graph_builder b;
    const value_id x = b.input("x", {dim::symbol("batch"), 3, 8, 8});
    value_id v =
        b.op("Conv", {x, b.constant("w", random_tensor({4, 3, 3, 3}, 1)), b.constant("b", random_tensor({4}, 2))});
    v = b.op("Relu", {v}, {}, "hidden");
    const value_id y = b.op("GlobalAveragePool", {v}, {}, "y");
    b.output(y);
    b.output(v); // read inside and wanted outside
    const both r = check_precision(b.g, {random_tensor({2, 3, 8, 8}, 3)}, fuse);
    CHECK(count_nodes(r.half, "troupe.ToFloat16") == 1);
    CHECK(count_nodes(r.half, "Cast") == 2);
    CHECK(r.half.nodes.size() == r.full.nodes.size() + 3);
    CHECK(input_types(r.half, "Conv") == all{dtype::float16});
    CHECK(input_types(r.half, "GlobalAveragePool") == all{dtype::float16});
    for (const value& w : r.half.values)
      CHECK((!w.constant || w.type == dtype::float16));
  }
}

TEST_CASE("caches that the caller takes back stay float32, new rows are converted", "[rewrite]") {
  const bool by_operator = GENERATE(false, true);
  std::vector<tensor> inputs{random_tensor({1, 3, 16}, 1)};
  for (uint32_t i = 0; i < 4; ++i)
    inputs.push_back(random_tensor({1, 2, 5, 8}, 2 + i));
  const both r = check_precision(by_operator ? decoder_by_operator() : cached_decoder(), inputs);
  CHECK(input_types(r.half, "Append") == all(4, dtype::float32));
  CHECK(input_types(r.half, "Attention") == all(2, dtype::float16));
  CHECK(count_nodes(r.half, "troupe.ToFloat16") == 1); // of x
  for (const node& n : r.half.nodes)
    if (n.op_type == "Attention")
      for (const size_t cache : {4, 5}) {
        CHECK(r.half.values[n.inputs.at(cache)].type == dtype::float32);
        CHECK(std::find(r.half.inputs.begin(), r.half.inputs.end(), n.inputs[cache]) != r.half.inputs.end());
      }
}

TEST_CASE("caches of attention that is projected stay float32, too", "[rewrite]") {
  const graph half = rewrite(projected_decoder(), {.precision = precision::fp16, .for_gpus = true});
  CHECK(input_types(half, "AttentionProjection") == all(2, dtype::float16));
  for (const node& n : half.nodes)
    if (n.op_type == "AttentionProjection")
      for (const size_t cache : {4, 5})
        CHECK(half.values[n.inputs.at(cache)].type == dtype::float32);
}

TEST_CASE("caches become float16 for attention that no kernel computes from float32 ones", "[rewrite]") {
  graph g = decoder_by_operator(1);
  for (node& n : g.nodes)
    if (n.op_type == "Attention")
      n.attrs.set("softcap", 2.f);
  const both r = check_precision(
      g, {random_tensor({1, 3, 16}, 1), random_tensor({1, 2, 5, 8}, 2), random_tensor({1, 2, 5, 8}, 3)});
  CHECK(input_types(r.half, "Append") == all(2, dtype::float32));
  for (const node& n : r.half.nodes)
    if (n.op_type == "Attention")
      for (const value_id operand : n.inputs)
        CHECK((operand == no_value || r.half.values[operand].type == dtype::float16));
}

TEST_CASE("fp32 and auto convert nothing", "[rewrite]") {
  graph_builder b;
  b.output(b.op("Relu", {b.input("x", {4})}));
  for (precision p : {precision::fp32, precision::automatic})
    CHECK(rewrite(b.g, {.precision = p}).nodes.size() == 1);
}

TEST_CASE("operands that shapes depend on stay float32, their tensor does not", "[rewrite]") {
  graph_builder b;
  const value_id x = b.op("Relu", {b.input("x", {1, 2, 4, 4})});
  b.output(b.op("Resize", {x, no_value, b.constant("scales", floats({4}, {1, 1, 2, 2}))}));
  const both r = check_precision(b.g, {random_tensor({1, 2, 4, 4}, 1)});
  CHECK(input_types(r.half, "Resize") == all{dtype::float16});
  for (const node& n : r.half.nodes)
    if (n.op_type == "Resize")
      CHECK(r.half.values[n.inputs[2]].type == dtype::float32);
}

TEST_CASE("values between two quantisations stay float32", "[rewrite]") {
  graph_builder b;
  const value_id scale = b.scalar(0.02f), zero = b.constant("zero", tensor::of<uint8_t>({}, std::vector<uint8_t>{128}));
  const value_id x = b.op("Tanh", {b.input("x", {4})});
  const value_id d = b.op("DequantizeLinear", {b.op("QuantizeLinear", {x, scale, zero}), scale, zero});
  const value_id q = b.op("QuantizeLinear", {b.op("Sigmoid", {d}), scale, zero});
  b.output(b.op("Add", {b.op("DequantizeLinear", {q, scale, zero}), x}));
  const both r = check_precision(b.g, {floats({4}, {-1, 0, 1, 2})}, false); // fused, it is a chain of bytes
  CHECK(input_types(r.half, "Tanh") == all{dtype::float16});
  CHECK(input_types(r.half, "Sigmoid") == all{dtype::float32});
  CHECK(input_types(r.half, "QuantizeLinear") == all{dtype::float32, dtype::float32});
  CHECK(input_types(r.half, "Add") == all{dtype::float16});
}

TEST_CASE("values that come from integers keep float32's digits until they meet activations", "[rewrite]") {
  graph_builder b;
  const value_id position = b.op("Cast", {b.input("p", {2, 1}, dtype::int64)}, attrs_of({{"to", int64_t{1}}}));
  const value_id angle = b.op("Mul", {position, b.constant("f", floats({1, 2}, {1.f, 0.37f}))});
  b.output(b.op("Add", {b.op("Cos", {angle}), b.op("Tanh", {b.input("x", {2, 2})})}));
  const auto p = tensor::of<int64_t>({2, 1}, std::vector<int64_t>{3001, 4097});
  for (const bool fuse : {false, true}) {
    const both r = check_precision(b.g, {p, random_tensor({2, 2}, 1)}, fuse);
    CHECK(count_nodes(r.half, "troupe.ToFloat16") == (fuse ? 0 : 2)); // fused, it is one float32 chain
  }
}

TEST_CASE("a finite mask stays finite: rows that are masked throughout are not NaN", "[rewrite]") {
  const float lowest = std::numeric_limits<float>::lowest();
  for (const int how : {0, 1, 2, 3}) {
    graph_builder b;
    std::vector<tensor> inputs{random_tensor({2, 3}, 1)};
    const value_id scores = b.op("Tanh", {b.input("x", {2, 3})});
    value_id masked = no_value;
    if (how == 0) { // a constant mask
      masked = b.op("Add", {scores, b.constant("m", floats({2, 3}, {lowest, lowest, lowest, 0, 0, lowest}))});
    } else if (how == 1) { // a mask of integers, as BERT has it
      const value_id keep = b.op("Cast", {b.input("m", {2, 3}, dtype::int64)}, attrs_of({{"to", int64_t{1}}}));
      const value_id m = b.op("Mul", {b.op("Sub", {b.scalar(1), keep}), b.scalar(lowest)});
      masked = b.op("Add", {scores, m});
      inputs.push_back(tensor::of<int64_t>({2, 3}, std::vector<int64_t>{0, 0, 0, 1, 1, 0}));
    } else if (how == 2) { // a mask that the caller makes
      masked = b.op("Add", {scores, b.input("m", {2, 3})});
      inputs.push_back(floats({2, 3}, {lowest, lowest, lowest, 0, 0, lowest}));
    } else { // a float mask turned over, whose immediate a chain holds
      const value_id m = b.op("Mul", {b.op("Sub", {b.scalar(1), b.input("m", {2, 3})}), b.scalar(lowest)});
      masked = b.op("Add", {scores, m});
      inputs.push_back(floats({2, 3}, {0, 0, 0, 1, 1, 0}));
    }
    b.output(b.op("Softmax", {masked}));
    for (const bool fuse : {false, true}) {
      INFO(how << " " << fuse);
      const graph half = rewrite(b.g, {.fuse = fuse, .precision = precision::fp16});
      const auto y = to_double(run_graph(half, inputs).at(0).view());
      CHECK(y[0] == Approx(1. / 3).epsilon(0.1)); // one step of float16 there is 32: scores below vanish
      CHECK(y[5] == 0);
      CHECK(y[3] + y[4] == Approx(1).epsilon(1e-3));
    }
  }
}

TEST_CASE("infinite mask values stay infinite", "[rewrite]") {
  graph_builder b;
  const value_id x = b.op("Tanh", {b.input("x", {1, 2})});
  b.output(b.op("Add", {x, b.constant("m", floats({1, 2}, {-infinity, 0}))}));
  const graph half = rewrite(b.g, {.precision = precision::fp16});
  CHECK(run_graph(half, {floats({1, 2}, {1, 0})}).at(0).values<float>()[0] == -infinity);
}

TEST_CASE("a hand-written norm does not overflow after its squares", "[rewrite]") {
  graph_builder b;
  const value_id x = b.op("Relu", {b.input("x", {2, 4})});
  const value_id mean =
      b.op("ReduceMean", {b.op("Pow", {x, b.scalar(2)})}, attrs_of({{"axes", std::vector<int64_t>{1}}}));
  b.output(b.op("Div", {x, b.op("Sqrt", {b.op("Add", {mean, b.scalar(1e-5f)})})}));
  tensor input = random_tensor({2, 4}, 5);
  for (int64_t i = 0; i < input.size(); ++i)
    input.mutable_data<float>()[i] *= 3000;
  for (const bool fuse : {false, true})
    check_precision(b.g, {input}, fuse);
}

TEST_CASE("embeddings are float16, and types that float16 files state are left alone", "[rewrite]") {
  graph_builder b;
  const value_id e = b.op("Gather", {b.constant("table", random_tensor({8, 4}, 1)), b.input("ids", {3}, dtype::int64)});
  b.output(b.op("Sigmoid", {e}));
  const value_id f16 = b.op("Relu", {b.input("h", {3}, dtype::float16)});
  b.output(b.op("Exp", {f16}));
  tensor h(dtype::float16, {3});
  for (int i = 0; i < 3; ++i)
    h.mutable_data<float16>()[i] = float16(0.5f * static_cast<float>(i));
  const auto ids = tensor::of<int64_t>({3}, std::vector<int64_t>{1, 7, 0});
  const both r = check_precision(b.g, {ids, h});
  CHECK(input_types(r.half, "Gather") == all{dtype::float16});
  CHECK(count_nodes(r.half, "Cast") == 1);
  CHECK(count_nodes(r.half, "troupe.ToFloat16") == 0);
}

TEST_CASE("outputs whose dims depend on data keep their symbols", "[rewrite]") {
  graph_builder b;
  const value_id x = b.op("Relu", {b.input("x", {6})});
  b.output(b.op("Compress", {x, b.input("c", {6}, dtype::boolean)}, attrs_of({{"axis", int64_t{0}}})));
  const graph half = rewrite(b.g, {.precision = precision::fp16});
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g, {.precision = precision::fp16});
  tensor keep(dtype::boolean, {6});
  for (int i = 0; i < 6; ++i)
    keep.mutable_data<bool>()[i] = i % 2 == 0;
  const run_result result = s.run({{"x", floats({6}, {1, 2, 3, 4, -5, 6})}, {"c", keep}});
  const tensor& y = result.outputs.begin()->second;
  CHECK(y.type() == dtype::float32);
  CHECK(to_double(y.view()) == std::vector<double>{1, 3, 0});
}

TEST_CASE("small models in fp16 are within 1e-2 of fp32", "[rewrite][A4]") {
  for (const char* name : {"small_cnn", "small_transformer"}) {
    INFO(name);
    const std::string file = test_data() + "/" + name + ".onnx";
    engine e({.devices = {"cpu"}});
    const session full = e.load(file), half = e.load(file, {.precision = precision::fp16});
    named_tensors inputs;
    uint32_t seed = 1;
    for (const value_info& i : full.inputs()) {
      shape dims;
      for (const dim& d : *i.dims)
        dims.push_back(d.is_constant() ? d.constant() : 2);
      inputs.emplace(i.name, i.type == dtype::float32 ? random_tensor(dims, seed++) : zeros(i.type, dims));
    }
    std::vector<tensor> a, b;
    for (auto& [output, t] : half.run(inputs).outputs)
      a.push_back(t);
    for (auto& [output, t] : full.run(inputs).outputs)
      b.push_back(t);
    CHECK(relative_l2(a, b) <= 1e-2);
    CHECK(relative_l2(a, b) > 0); // something was converted
  }
}

TEST_CASE("fusions find in float16 the nodes that they find in float32", "[rewrite][A4]") {
  for (const char* name : {"small_cnn", "small_transformer"}) {
    INFO(name);
    const graph g = load_model(test_data() + "/" + name + ".onnx");
    const graph full = rewrite(g, {}), half = rewrite(rewrite(g, {.fuse = false, .precision = precision::fp16}), {});
    size_t found = 0;
    for (const char* op : {"troupe.Conv", "troupe.MatMul", "troupe.Attention", "LayerNormalization"}) {
      INFO(op);
      CHECK(count_nodes(half, op) == count_nodes(full, op));
      found += count_nodes(full, op);
    }
    CHECK(found > 0);
  }
}

TEST_CASE("projections hand out their results in float32", "[rewrite][projections]") {
  const auto casts = [](bool read) {
    graph_builder b(23);
    const value_id x = b.input("x", {1, dim::symbol("seq"), 16});
    const value_id v = b.op("RMSNormalization", {x, b.constant("scale", random_tensor({16}, 2))});
    const value_id logits = b.op("MatMul", {v, b.constant("w", random_tensor({16, 20}, 3))}, {}, "logits");
    b.output(logits);
    if (read)
      b.output(b.op("Softmax", {logits}));
    const graph g = rewrite(b.g, {.precision = precision::fp16, .for_gpus = true});
    CHECK(count_nodes(g, "troupe.Projections") == 1);
    CHECK(g.values[g.outputs[0]].type == dtype::float32);
    const std::vector<tensor> inputs{random_tensor({1, 3, 16}, 1)};
    CHECK(relative_l2(run_graph(g, inputs), run_graph(rewrite(b.g, {}), inputs)) <= 1e-2);
    return count_nodes(g, "Cast");
  };
  CHECK(casts(false) == 0);
  CHECK(casts(true) == 2);
}
