// Networks whose symbolic dims are equal but written differently, run on a CPU and on a GPU that work channels-last:
// operands of one elementwise node must pair up whatever their layouts, and share bytes only where they are alike.
#include "cpu/cpu_device.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/run_graph.hpp"
#include "support/run_inline.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::test;

namespace {

const dim h = dim::symbol("h"), w = dim::symbol("w");

value_id conv(graph_builder& b, value_id x, int64_t from, int64_t to, int64_t stride) {
  const auto seed = static_cast<uint32_t>(b.g.nodes.size());
  const value_id weights = b.constant("w" + std::to_string(seed), random_tensor({to, from, 3, 3}, seed));
  return b.op("Conv", {x, weights},
              attrs_of({{"pads", std::vector<int64_t>(4, 1)}, {"strides", std::vector<int64_t>(2, stride)}}));
}

value_id twice_as_large(graph_builder& b, value_id x) {
  tensor scales(dtype::float32, {4});
  std::copy_n(std::array{1.f, 1.f, 2.f, 2.f}.begin(), 4, scales.mutable_data<float>());
  return b.op("Resize", {x, no_value, b.constant("scales" + std::to_string(b.g.nodes.size()), scales)});
}

/// Two levels of a feature pyramid: the upper one, resized, is added to the lower one.
graph pyramid(std::string op) {
  graph_builder b;
  const value_id x = b.input("x", {1, 3, h, w});
  const value_id fine = conv(b, x, 3, 6, 2), coarse = conv(b, fine, 6, 6, 2);
  const value_id joined = b.op(op, {twice_as_large(b, coarse), b.op("Relu", {fine})});
  b.output(b.op("Sigmoid", {conv(b, joined, 6, 5, 1)}, {}, "y"));
  b.output(b.op("Abs", {joined}, {}, "joined"));
  return b.g;
}

/// A transposed convolution's output with free dims, and a constant column of that height.
graph column() {
  graph_builder b;
  const value_id x = b.input("x", {1, 3, h, w});
  const value_id wide = b.op("ConvTranspose", {x, b.constant("t", random_tensor({3, 4, 2, 2}, 9))},
                             attrs_of({{"strides", std::vector<int64_t>{2, 2}}}));
  b.output(b.op("Mul", {b.op("Add", {wide, b.constant("column", random_tensor({16, 1}, 3))}), wide}, {}, "y"));
  return b.g;
}

/// Convolutions of bytes, the first of 3 channels: as a GPU finds them, beside results that come channels-last.
graph bytes() {
  graph_builder b;
  const value_id scale = b.scalar(0.0625f),
                 zero = b.constant("zero", tensor::of<uint8_t>({}, std::vector<uint8_t>{120}));
  const auto rounded = [&](value_id v) {
    return b.op("DequantizeLinear", {b.op("QuantizeLinear", {v, scale, zero}), scale, zero});
  };
  const auto conv = [&](value_id x, int64_t from, int64_t to, int64_t stride) {
    std::vector<int8_t> codes;
    for (int64_t i = 0; i < to * from * 9; ++i)
      codes.push_back(static_cast<int8_t>(i * 37 % 101 - 50));
    const value_id w =
        b.op("DequantizeLinear",
             {b.constant(fmt::format("w{}", b.g.values.size()), tensor::of<int8_t>({to, from, 3, 3}, codes)),
              b.scalar(0.0078125f)});
    return rounded(
        b.op("Conv", {x, w},
             attrs_of({{"pads", std::vector<int64_t>(4, 1)}, {"strides", std::vector<int64_t>(2, stride)}})));
  };
  b.output(conv(conv(rounded(b.input("x", {2, 3, h, w})), 3, 6, 2), 6, 5, 1));
  return b.g;
}

void check_on(device& d, const graph& g, const tensor& in) {
  const auto p = make_plan(std::make_shared<const graph>(rewrite(g, {})), {d.info()}, {});
  inline_runner runner(p, {&d});
  const std::vector<tensor> got = runner.run(std::span(&in, 1)), wanted = run_graph(rewrite(g, {.fuse = false}), {in});
  for (size_t o = 0; o < got.size(); ++o) {
    double worst = 0;
    for (int64_t i = 0; i < got[o].size(); ++i)
      worst = std::max<double>(worst, std::abs(got[o].values<float>()[i] - wanted[o].values<float>()[i]));
    INFO("output " << o);
    CHECK(worst < 1e-3);
  }
}

} // namespace

TEST_CASE("operands of dims written differently pair up in every layout", "[vulkan][D3][D5]") {
  const auto cpu = make_cpu_device("cpu", {.poison = true});
  const auto gpu = open_gpu({.poison = true});
  for (device* d : {cpu.get(), gpu.get()}) {
    INFO(d->info().name);
    for (const char* op : {"Add", "Mul", "Min", "PRelu"}) {
      INFO(op);
      check_on(*d, pyramid(op), random_tensor({1, 3, 16, 24}, 1));
    }
    check_on(*d, column(), random_tensor({1, 3, 8, 5}, 2));
    check_on(*d, column(), random_tensor({1, 3, 8, 1}, 2));
  }
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("convolutions of bytes that are not words read them in any layout", "[vulkan][quantised]") {
  const auto cpu = make_cpu_device("cpu", {.poison = true});
  const auto gpu = open_gpu({.poison = true});
  for (device* d : {static_cast<device*>(cpu.get()), static_cast<device*>(gpu.get())}) {
    INFO(d->info().name);
    check_on(*d, bytes(), random_tensor({2, 3, 9, 8}, 4));
  }
  CHECK(new_gpu_messages() == "");
}
