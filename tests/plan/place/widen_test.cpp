#include "plan/place/widen.hpp"

#include "cpu/cpu_device.hpp"
#include "cpu/prepared_plan.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/run_inline.hpp"
#include "tensor/convert.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::test;

namespace {

tensor to_type(const tensor& t, dtype type) {
  tensor result(type, t.dims());
  convert(t.view(), {type, result.dims(), result.mutable_data()});
  return result;
}

tensor halves(shape dims, std::vector<float> values) {
  return to_type(floats(std::move(dims), std::move(values)), dtype::float16);
}

/// Widens a graph of which all nodes are on `device`, or on the one that `placement` says.
graph widened(const graph_builder& b, std::vector<device_info> devices, std::vector<device_index> placement = {}) {
  graph g = inferred(b.g);
  placement.resize(g.nodes.size(), 0);
  widen_floats(g, placement, devices);
  CHECK(placement.size() == g.nodes.size());
  CHECK_NOTHROW(validate(g));
  return g;
}

device_info gpu() {
  device_info d{.name = "vulkan:0", .kind = device_kind::vulkan, .host_memory = false};
  d.gpu.emplace();
  return d;
}

/// Returns the types of the first operand and result of each node of `op`.
std::vector<std::pair<dtype, dtype>> types_of(const graph& g, const std::string& op) {
  std::vector<std::pair<dtype, dtype>> found;
  for (const node& n : g.nodes)
    if (n.op_type == op)
      found.emplace_back(g.values[n.inputs[0]].type, g.values[n.outputs[0]].type);
  return found;
}

using types_list = std::vector<std::pair<dtype, dtype>>;
constexpr dtype f16 = dtype::float16, f32 = dtype::float32, bf16 = dtype::bfloat16;

tensor run_on_cpu(const graph_builder& b, const tensor& x) {
  const auto cpu = make_cpu_device("cpu");
  inline_runner runner(make_plan(std::make_shared<const graph>(rewrite(b.g, {.fuse = false})), {cpu->info()}, {}),
                       {cpu.get()});
  return runner.run(std::vector<tensor>{x}).at(0);
}

} // namespace

TEST_CASE("16-bit floats are float32 between the nodes of a CPU", "[plan]") {
  for (const dtype type : {f16, bf16}) {
    graph_builder b;
    const value_id w = b.constant("w", to_type(random_tensor({4, 3, 3, 3}, 1), type));
    const value_id y = b.op("Relu", {b.op("Conv", {b.input("x", {1, 3, dim::symbol("h"), 8}, type), w})});
    b.output(b.op("Softmax", {y}));
    const graph g = widened(b, {{.name = "cpu"}});
    CHECK(types_of(g, "Cast") == types_list{{type, f32}, {f32, type}});
    for (const char* op : {"Conv", "Relu", "Softmax"})
      CHECK(types_of(g, op) == types_list{{f32, f32}});
    const value& weights = g.values[g.nodes[1].inputs[1]];
    CHECK(weights.type == f32);
    CHECK((weights.constant && weights.constant->step != nullptr));
    CHECK(g.values[g.outputs[0]].type == type);
    CHECK(g.values[g.inputs[0]].type == type);
  }
}

TEST_CASE("a GPU keeps 16-bit floats, and gets what crosses to it in 16 bits", "[plan]") {
  graph_builder b;
  value_id x = b.input("x", {8}, f16);
  for (int i = 0; i < 4; ++i)
    x = b.op(i % 2 ? "Relu" : "Neg", {x});
  b.output(x);
  CHECK(types_of(widened(b, {gpu()}), "Cast").empty());
  const graph g = widened(b, {gpu(), {.name = "cpu"}}, {0, 1, 1, 0});
  CHECK(types_of(g, "Cast") == types_list{{f16, f32}, {f32, f16}});
  CHECK(types_of(g, "Neg") == types_list{{f16, f16}, {f32, f32}});
  CHECK(types_of(g, "Relu") == types_list{{f32, f32}, {f16, f16}});
  // Between two CPUs as well: the value that crosses has the type that the model states.
  const graph two = widened(b, {{.name = "cpu"}, {.name = "cpu#1"}}, {0, 1, 1, 1});
  CHECK(types_of(two, "Cast") == types_list{{f16, f32}, {f32, f16}, {f16, f32}, {f32, f16}});
}

TEST_CASE("a GPU computes bfloat16 in float32, and moves it as it is", "[plan]") {
  device_info converts = gpu();
  converts.gpu->float16 = true;
  graph_builder b;
  const value_id turned = b.op("Transpose", {b.input("x", {3, 4}, bf16)});
  const value_id w = b.constant("w", to_type(random_tensor({3, 5}, 1), bf16));
  b.output(b.op("Softmax", {b.op("MatMul", {turned, w})}));
  const graph g = widened(b, {converts});
  CHECK(types_of(g, "Transpose") == types_list{{bf16, bf16}});
  CHECK(types_of(g, "MatMul") == types_list{{f32, f32}});
  CHECK(types_of(g, "Softmax") == types_list{{f32, f32}});
  CHECK(types_of(g, "Cast") == types_list{{bf16, f32}, {f32, bf16}});
  // One whose kernels store no 16 bits has no Casts.
  CHECK(types_of(widened(b, {gpu()}), "Cast").empty());
}

TEST_CASE("a node that decides by a 16-bit float sees it rounded", "[plan]") {
  graph_builder b;
  const value_id x = b.input("x", {4}, f16), sum = b.op("Add", {x, x});
  b.output(b.op("Less", {sum, x}));
  b.output(b.op("Cast", {sum}, attrs_of({{"to", int64_t{1}}})));
  b.output(b.op("ArgMax", {sum}));
  const graph g = widened(b, {{.name = "cpu"}});
  CHECK(types_of(g, "Add") == types_list{{f32, f32}});
  CHECK(types_of(g, "Less") == types_list{{f16, dtype::boolean}});
  CHECK(types_of(g, "ArgMax") == types_list{{f16, dtype::int64}});
  CHECK(types_of(g, "Cast") == types_list{{f16, f32}, {f32, f16}, {f16, f32}}); // in, out, and the model's own
}

TEST_CASE("elements that only move stay as they come", "[plan]") {
  graph_builder b;
  const value_id table = b.constant("table", to_type(random_tensor({100, 4}, 1), f16));
  const value_id row = b.op("Gather", {table, b.input("i", {2}, dtype::int64)});
  const value_id y = b.op("Neg", {row});
  b.output(b.op("Transpose", {y}));
  const graph g = widened(b, {{.name = "cpu"}});
  CHECK(types_of(g, "Gather") == types_list{{f16, f16}});
  CHECK(types_of(g, "Transpose") == types_list{{f32, f32}});
  CHECK(types_of(g, "Cast") == types_list{{f16, f32}, {f32, f16}});
}

TEST_CASE("nodes whose results are of a stated type, or have dims that depend on data, are left alone", "[plan]") {
  graph_builder b;
  const value_id x = b.input("x", {4}, f16);
  const value_id sum = b.op("Add", {x, x});
  b.output(b.op("CastLike", {b.input("y", {4}), sum}));
  b.output(b.op("Compress", {sum, b.input("c", {4}, dtype::boolean)}));
  const graph g = widened(b, {{.name = "cpu"}});
  CHECK(types_of(g, "Cast") == types_list{{f16, f32}, {f32, f16}});
  CHECK(types_of(g, "CastLike") == types_list{{f32, f16}});
  CHECK(types_of(g, "Compress") == types_list{{f16, f16}});
}

TEST_CASE("nothing overflows or is rounded between 16-bit nodes of a CPU, unless the model says so", "[cpu]") {
  const tensor x = halves({4}, {60000, -60000, 2048, 1});
  graph_builder b;
  const value_id v = b.input("x", {4}, f16), sum = b.op("Add", {v, v});
  b.output(b.op("Sub", {sum, v}));
  const tensor same = run_on_cpu(b, x);
  REQUIRE(same.type() == f16);
  CHECK(values_of(to_type(same, f32)) == values_of(to_type(x, f32)));

  graph_builder rounding;
  const value_id wide = rounding.input("x", {4});
  const value_id half = rounding.op("Cast", {wide}, attrs_of({{"to", int64_t{10}}}));
  rounding.output(rounding.op("Cast", {rounding.op("Neg", {half})}, attrs_of({{"to", int64_t{1}}})));
  const tensor y = run_on_cpu(rounding, floats({4}, {2049, 1e6, 0.1f, -3}));
  CHECK(values_of(y) == std::vector<float>{-2048, -INFINITY, -0.0999755859375f, 3});
}

TEST_CASE("an absent bound of Clip is the largest number of the model's type", "[cpu]") {
  graph_builder b;
  const value_id half = b.op("Cast", {b.input("x", {3})}, attrs_of({{"to", int64_t{10}}}));
  b.output(b.op("Cast", {b.op("Clip", {b.op("Neg", {half})})}, attrs_of({{"to", int64_t{1}}})));
  CHECK(values_of(run_on_cpu(b, floats({3}, {INFINITY, -INFINITY, 3}))) == std::vector<float>{-65504, 65504, -3});
}

TEST_CASE("a CPU has the kernels of float32 for float16", "[cpu]") {
  graph_builder b;
  const auto constant = [&](shape dims) {
    return b.constant("w" + std::to_string(b.g.values.size()), to_type(random_tensor(std::move(dims), 1), f16));
  };
  const value_id x = b.input("x", {1, 8, 6, 6}, f16);
  const value_id a = b.op("Conv", {x, constant({8, 8, 3, 3})}, attrs_of({{"pads", std::vector<int64_t>(4, 1)}}));
  const value_id t = b.op("ConvTranspose", {a, constant({8, 8, 1, 1})});
  const value_id c = b.op("Concat", {a, t}, attrs_of({{"axis", int64_t{1}}}));
  const value_id p = b.op("MaxPool", {c}, attrs_of({{"kernel_shape", std::vector<int64_t>{2, 2}}}));
  const value_id s = b.op("Sigmoid", {b.op("MatMul", {p, constant({5, 7})})});
  b.output(b.op("LayerNormalization", {b.op("Softmax", {s}), constant({7}), constant({7})}));
  const auto cpu = make_cpu_device("cpu");
  const auto p_all = make_plan(std::make_shared<const graph>(rewrite(b.g, {.fuse = false})), {cpu->info()}, {});
  kernel_resources resources;
  const auto prepared = prepare_plan(bind_segment(p_all, 0, {}), 0, resources);
  for (const prepared_step& step : prepared->chunks.at(0).steps) {
    const node& n = p_all->program->nodes[step.call];
    INFO(describe(n));
    CHECK((n.op_type == "Cast" || n.op_type == "Reorder" || step.kernel_name != "reference"));
  }
}
