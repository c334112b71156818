#include "ops/registry.hpp"
#include "plan/place/layout.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"
#include "support/made_up_op.hpp"
#include "support/run_graph.hpp"

#include <algorithm>
#include <random>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Graphs of convolutions and their neighbours.
struct conv_net : graph_builder {
  value_id conv(value_id x, int64_t channels_in, int64_t channels_out, int64_t kernel = 3) {
    const value_id w = constant("w" + std::to_string(g.values.size()),
                                tensor(g.values[x].type, {channels_out, channels_in, kernel, kernel}));
    return inferred("Conv", {x, w}, attrs_of({{"pads", std::vector<int64_t>(4, kernel / 2)}}));
  }
  size_t count(const std::string& op) const {
    return static_cast<size_t>(
        std::count_if(g.nodes.begin(), g.nodes.end(), [&](const troupe::node& n) { return n.op_type == op; }));
  }
};

std::vector<device_info> cpus(size_t count) {
  std::vector<device_info> devices(count);
  for (device_info& d : devices)
    d.prefers_channels_last = true;
  return devices;
}

/// A GPU that prefers channels-last operands.
device_info channels_last_gpu() {
  device_info d{.name = "vulkan:0", .host_memory = false, .prefers_channels_last = true};
  d.gpu.emplace();
  return d;
}

/// Has the nodes of `op` use a copy of their row with this launch rule.
void use_rule(conv_net& n, const std::string& op, launch_rule rule) {
  CHECK(n.count(op) > 0);
  const op_def& row = testing::gpu_op(*find_op("", op, 17), rule);
  for (node& call : n.g.nodes)
    if (call.op_type == row.name)
      call.def = &row;
}

launch_lists any_layout(const gpu_call&) {
  return launch_lists(1);
}

launch_lists only_plain(const gpu_call& call) {
  return launch_lists(call.inputs[0].layout == layout::plain && call.outputs[0].layout == layout::plain);
}

} // namespace

TEST_CASE("GPUs have channels-last float16, host-memory devices float32 only", "[plan]") {
  for (const bool gpu : {false, true}) {
    conv_net n;
    n.g.outputs = {n.conv(n.input({1, 3, 8, 8}, dtype::float16), 3, 4)};
    use_rule(n, "Conv", any_layout);
    const std::vector<device_info> devices = gpu ? std::vector{channels_last_gpu()} : cpus(1);
    std::vector<device_index> placement(n.g.nodes.size(), 0);
    assign_layouts(n.g, placement, devices);
    CHECK(n.count("Reorder") == (gpu ? 2 : 0));
    CHECK_NOTHROW(verify_layouts(n.g, placement, devices));
  }
}

TEST_CASE("a GPU's node stays plain if its kernels take nothing else", "[plan]") {
  conv_net n;
  n.g.outputs = {n.inferred("Relu", {n.conv(n.conv(n.input({1, 3, 8, 8}), 3, 4), 4, 4)})};
  use_rule(n, "Conv", any_layout);
  use_rule(n, "Relu", only_plain);
  const std::vector<device_info> devices{channels_last_gpu()};
  std::vector<device_index> placement(n.g.nodes.size(), 0);
  assign_layouts(n.g, placement, devices);
  verify_layouts(n.g, placement, devices);
  CHECK(n.count("Reorder") == 2);
  CHECK(n.g.nodes.back().op_type == "Relu");
  CHECK(n.g.values[n.g.nodes.back().inputs[0]].layout == layout::plain);
}

TEST_CASE("pooling with indices stays plain", "[plan]") {
  conv_net n;
  const value_id x = n.conv(n.input({1, 3, 8, 8}), 3, 4);
  n.g.outputs = n.call("MaxPool", {x}, {"y", "indices"}, attrs_of({{"kernel_shape", std::vector<int64_t>{2, 2}}}));
  resolve(n.g);
  infer_node(n.g, n.g.nodes.back());
  std::vector<device_index> placement(n.g.nodes.size(), 0);
  assign_layouts(n.g, placement, cpus(1));
  verify_layouts(n.g, placement, cpus(1));
  for (value_id v : n.g.nodes.back().outputs)
    CHECK(n.g.values[v].layout == layout::plain);
  CHECK(n.g.values[n.g.nodes.back().inputs[0]].layout == layout::plain);
}

TEST_CASE("a convolutional network is channels-last inside, plain at its ends", "[plan]") {
  conv_net n;
  const value_id x = n.input({dim::symbol("batch"), 3, 8, 8});
  value_id v = n.inferred("Relu", {n.conv(x, 3, 4)});
  v = n.inferred("Relu", {n.conv(v, 4, 6)});
  v = n.inferred("GlobalAveragePool", {v});
  n.g.outputs = {v};
  std::vector<device_index> placement(n.g.nodes.size(), 0);
  assign_layouts(n.g, placement, cpus(1));
  verify_layouts(n.g, placement, cpus(1));
  validate(n.g);
  // One at the beginning; the pooled value is the same way in both layouts.
  CHECK(n.count("Reorder") == 1);
  CHECK(n.g.nodes[0].op_type == "Reorder");
  CHECK(n.g.values[n.g.nodes[1].outputs[0]].layout == layout::channels_last);
  CHECK(n.g.values[v].layout == layout::plain);
  CHECK(placement.size() == n.g.nodes.size());
}

TEST_CASE("a model output that is needed in both layouts is made in one and reordered", "[plan]") {
  conv_net n;
  const value_id x = n.input({1, 3, 8, 8});
  const value_id a = n.conv(x, 3, 4), b = n.conv(a, 4, 4);
  n.g.outputs = {a, b};
  std::vector<device_index> placement(n.g.nodes.size(), 0);
  assign_layouts(n.g, placement, cpus(1));
  verify_layouts(n.g, placement, cpus(1));
  validate(n.g);
  CHECK(n.g.outputs == std::vector<value_id>{a, b});
  CHECK(n.count("Reorder") == 3);
}

TEST_CASE("devices that do not want channels-last values get none", "[plan]") {
  conv_net n;
  const value_id v = n.conv(n.input({1, 3, 8, 8}), 3, 4);
  n.g.outputs = {v};
  std::vector<device_index> placement(n.g.nodes.size(), 0);
  assign_layouts(n.g, placement, std::vector<device_info>(1));
  CHECK(n.count("Reorder") == 0);
  CHECK(n.g.values[v].layout == layout::plain);
}

TEST_CASE("random networks on random placements have consistent layouts", "[plan][slow]") {
  std::minstd_rand random(7);
  const auto pick = [&](size_t n) { return random() % n; };
  for (int round = 0; round < 300; ++round) {
    conv_net n;
    std::vector<value_id> values{n.input({dim::symbol("n"), 3, 8, 8}), n.input({2, 3, 8, 8})};
    for (size_t i = 0; i < 3 + pick(12); ++i) {
      const value_id a = values[pick(values.size())], b = values[pick(values.size())];
      const symbolic_shape dims = *n.g.values[a].dims;
      switch (pick(5)) {
        case 0:
          values.push_back(
              n.conv(a, dims[1].constant(), 1 + static_cast<int64_t>(pick(4)), 1 + 2 * static_cast<int64_t>(pick(2))));
          break;
        case 1: values.push_back(n.inferred("Relu", {a})); break;
        case 2: values.push_back(n.inferred("Softmax", {a})); break;
        case 3: values.push_back(n.inferred("GlobalMaxPool", {a})); break;
        default: values.push_back(n.inferred("Sigmoid", {b})); break;
      }
    }
    for (size_t i = 0; i < 1 + pick(3); ++i)
      n.g.outputs.push_back(values[2 + pick(values.size() - 2)]);
    std::vector<device_info> devices = cpus(2);
    devices.push_back({});
    std::vector<device_index> placement;
    for (size_t i = 0; i < n.g.nodes.size(); ++i)
      placement.push_back(static_cast<device_index>(pick(3)));
    const size_t before = n.g.nodes.size();
    assign_layouts(n.g, placement, devices);
    REQUIRE(placement.size() == n.g.nodes.size());
    REQUIRE(n.g.nodes.size() == before + n.count("Reorder"));
    validate(n.g);
    verify_layouts(n.g, placement, devices);
  }
}

TEST_CASE("the layout verifier sees a channels-last value before a plain reader", "[plan]") {
  conv_net n;
  const value_id a = n.conv(n.conv(n.input({1, 3, 8, 8}), 3, 4), 4, 4);
  n.g.outputs = {n.inferred("Softmax", {a})};
  std::vector<device_index> placement(n.g.nodes.size(), 0);
  assign_layouts(n.g, placement, cpus(1));
  CHECK_NOTHROW(verify_layouts(n.g, placement, cpus(1)));
  node& softmax = n.g.nodes.back();
  const node& reorder = n.g.nodes[n.g.nodes.size() - 2];
  REQUIRE(reorder.op_type == "Reorder");
  softmax.inputs[0] = reorder.inputs[0];
  CHECK_THROWS_AS(verify_layouts(n.g, placement, cpus(1)), error);
}

TEST_CASE("an operand whose dims may turn out equal is laid out like the output", "[plan][D3]") {
  const dim h = dim::symbol("h"), w = dim::symbol("w"), other_h = dim::symbol("other_h");
  conv_net n;
  const value_id x = n.conv(n.input({1, 3, h, w}), 3, 4);
  const value_id sum = n.inferred("Add", {x, n.input({1, 4, other_h, w})});
  const value_id column = n.constant("column", tensor(dtype::float32, {15, 1}));
  const value_id repeated = n.inferred("Mul", {sum, n.input({1, 4, 1, w})});
  n.g.outputs = {n.conv(n.inferred("Mul", {repeated, column}), 4, 4)};
  std::vector<device_index> placement(n.g.nodes.size(), 0);
  assign_layouts(n.g, placement, cpus(1));
  verify_layouts(n.g, placement, cpus(1));
  const auto layouts_of = [&](const std::string& op, size_t which) {
    std::vector<layout> found;
    for (const node& call : n.g.nodes)
      if (call.op_type == op && which-- == 0)
        for (value_id v : call.inputs)
          found.push_back(n.g.values[v].layout);
    return found;
  };
  CHECK(layouts_of("Add", 0) == std::vector{layout::channels_last, layout::channels_last});
  CHECK(layouts_of("Mul", 0) == std::vector{layout::channels_last, layout::plain}); // repeated for certain
  CHECK(layouts_of("Mul", 1) == std::vector{layout::channels_last, layout::plain}); // a constant
}

TEST_CASE("a residual of bytes is laid out like the sum that a convolution ends in", "[plan][quantised]") {
  graph_builder b;
  const value_id scale = b.scalar(0.0625f);
  const auto real = [&](value_id bytes) { return b.op("DequantizeLinear", {bytes, scale}); };
  const value_id w = real(b.constant("w", tensor::of<int8_t>({4, 4, 1, 1}, std::vector<int8_t>(16, 3))));
  const value_id x = real(b.input({1, 4, 8, 8}, dtype::uint8)), r = real(b.input({1, 4, 8, 8}, dtype::uint8));
  const value_id y = real(b.op("QuantizeLinear", {b.op("Conv", {x, w}), scale}));
  b.output(b.op("QuantizeLinear", {b.op("Add", {y, r}), scale}));
  graph g = rewrite(b.g, {});
  std::vector<device_index> placement(g.nodes.size(), 0);
  assign_layouts(g, placement, cpus(1));
  CHECK_NOTHROW(verify_layouts(g, placement, cpus(1)));
  const auto conv = std::ranges::find(g.nodes, "QuantizedConv", &node::op_type);
  REQUIRE(conv != g.nodes.end());
  REQUIRE(conv->inputs.size() == 14);
  for (const value_id v : {conv->inputs[0], conv->inputs[9], conv->outputs[0]})
    CHECK(g.values[v].layout == layout::channels_last);
}

TEST_CASE("a constant residual is laid out by a node, whose result is no constant", "[plan]") {
  conv_net n;
  const value_id x = n.input({1, 4, 8, 8});
  n.output(n.op("Add", {n.conv(x, 4, 4), n.constant("residual", random_tensor({1, 4, 8, 8}, 3))}));
  graph g = rewrite(n.g, {});
  REQUIRE(g.nodes.size() == 1);
  std::vector<device_index> placement(g.nodes.size(), 0);
  assign_layouts(g, placement, cpus(1));
  CHECK_NOTHROW(verify_layouts(g, placement, cpus(1)));
  CHECK_NOTHROW(validate(g)); // a constant has no producer
  CHECK(g.nodes.size() == 4);
}

TEST_CASE("a GPU's convolution of bytes that are no words reads them as they are", "[plan][quantised]") {
  const auto layouts_of = [](int64_t channels, const device_info& device, bool after_conv) {
    graph_builder b;
    const value_id scale = b.scalar(0.0625f);
    const auto real = [&](value_id bytes) { return b.op("DequantizeLinear", {bytes, scale}); };
    const auto conv = [&](value_id x, int64_t from, int64_t to) {
      const std::vector<int8_t> codes(static_cast<size_t>(from * to), 3);
      const value_id w =
          real(b.constant(fmt::format("w{}", b.g.values.size()), tensor::of<int8_t>({to, from, 1, 1}, codes)));
      return b.op("QuantizeLinear", {b.op("Conv", {x, w}), scale});
    };
    value_id x = real(b.input({1, channels, 8, 8}, dtype::uint8));
    if (after_conv)
      x = real(conv(x, channels, channels));
    b.output(conv(x, channels, 8));
    graph g = rewrite(b.g, {});
    std::vector<device_index> placement(g.nodes.size(), 0);
    const std::vector<device_info> devices{device};
    assign_layouts(g, placement, devices);
    CHECK_NOTHROW(verify_layouts(g, placement, devices));
    const auto last =
        std::find_if(g.nodes.rbegin(), g.nodes.rend(), [](const node& n) { return n.op_type == "QuantizedConv"; });
    return std::pair(g.values[last->inputs[0]].layout, g.values[last->outputs[0]].layout);
  };
  using enum layout;
  device_info gpu = channels_last_gpu();
  gpu.gpu->int8 = true;
  CHECK(layouts_of(3, gpu, false) == std::pair(plain, channels_last));
  CHECK(layouts_of(3, gpu, true) == std::pair(channels_last, channels_last));
  CHECK(layouts_of(4, gpu, false) == std::pair(channels_last, channels_last));
  CHECK(layouts_of(3, cpus(1)[0], false) == std::pair(channels_last, channels_last));
}
