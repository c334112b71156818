// Fusion of dequantised operands and quantised results.
#include "ops/composed/fused_elementwise.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t size = 4;

/// x, quantised and dequantised.
value_id dequantised_input(graph_builder& b, symbolic_shape dims) {
  const value_id scale = b.scalar(0.03125f);
  const value_id zero = b.constant("x_zero", tensor::of<uint8_t>({}, std::vector<uint8_t>{128}));
  return b.op("DequantizeLinear", {b.op("QuantizeLinear", {b.input("x", std::move(dims)), scale, zero}), scale, zero});
}

/// A square matrix that no transposition leaves as it is, dequantised.
value_id dequantised_matrix(graph_builder& b) {
  std::vector<int8_t> codes;
  for (int64_t i = 0; i < size * size; ++i)
    codes.push_back(static_cast<int8_t>(7 * i - 50));
  return b.op("DequantizeLinear", {b.constant("w", tensor::of<int8_t>({size, size}, codes)), b.scalar(0.5f)});
}

attributes window(std::vector<int64_t> kernel, std::vector<int64_t> strides, std::vector<int64_t> pads,
                  std::vector<int64_t> dilations) {
  return attrs_of({{"kernel_shape", std::move(kernel)},
                   {"strides", std::move(strides)},
                   {"pads", std::move(pads)},
                   {"dilations", std::move(dilations)}});
}

/// Rewrites `g` with products of bytes and requires its results to stay; returns the rewritten graph.
graph check_quantised(const graph& g, const std::vector<tensor>& inputs) {
  graph fused = rewrite(g, {});
  const tensor want = run_graph(inferred(g), inputs).at(0), got = run_graph(fused, inputs).at(0);
  REQUIRE(want.dims() == got.dims());
  for (int64_t i = 0; i < want.size(); ++i)
    CHECK(got.data<float>()[i] == Approx(want.data<float>()[i]).epsilon(1e-4).margin(1e-4));
  return fused;
}

/// The largest elements of a dequantised image.
graph pooled(int64_t extent, attributes attrs) {
  graph_builder b;
  b.output(b.op("MaxPool", {dequantised_input(b, {1, 1, extent, extent})}, std::move(attrs)));
  return b.g;
}

dtype type_pooled(const graph& g) {
  for (const node& n : g.nodes)
    if (n.op_type == "MaxPool")
      return g.values[n.inputs[0]].type;
  throw std::logic_error("nothing is pooled");
}

} // namespace

TEST_CASE("a dequantised matrix is transposed in a product if its Transpose exchanges axes", "[rewrite][quantised]") {
  const std::vector<tensor> x{random_tensor({3, size}, 5)};
  for (const attributes& perm : {attributes(), attrs_of({{"perm", std::vector<int64_t>{1, 0}}}),
                                 attrs_of({{"perm", std::vector<int64_t>{0, 1}}})}) {
    graph_builder b;
    b.output(b.op("MatMul", {dequantised_input(b, {3, size}), b.op("Transpose", {dequantised_matrix(b)}, perm)}));
    const graph fused = check_quantised(b.g, x);
    if (perm.integers("perm", {1, 0}) == std::vector<int64_t>{1, 0})
      CHECK(count_nodes(fused, "troupe.QuantizedMatMul") == 1);
  }
}

TEST_CASE("bytes are pooled before they are dequantised if every window has one", "[rewrite][quantised]") {
  const auto image = [](int64_t extent) { // above the lowest code, which is -4
    tensor x(dtype::float32, {1, 1, extent, extent});
    std::fill_n(x.mutable_data<float>(), x.size(), -2.f);
    return std::vector<tensor>{x};
  };
  CHECK(type_pooled(check_quantised(pooled(4, window({2, 2}, {2, 2}, {1, 1, 1, 1}, {1, 1})), image(4))) ==
        dtype::uint8);
  CHECK(type_pooled(check_quantised(pooled(7, window({2, 2}, {2, 2}, {0, 0, 0, 0}, {3, 3})), image(7))) ==
        dtype::uint8);
  // Windows after the image, before it, and with their taps on both sides of it.
  CHECK(type_pooled(check_quantised(pooled(4, window({2, 2}, {2, 2}, {0, 0, 3, 3}, {1, 1})), image(4))) ==
        dtype::float32);
  CHECK(type_pooled(check_quantised(pooled(4, window({2, 2}, {2, 2}, {2, 0, 0, 0}, {1, 1})), image(4))) ==
        dtype::float32);
  CHECK(type_pooled(check_quantised(pooled(2, window({2, 2}, {1, 1}, {1, 1, 1, 1}, {3, 3})), image(2))) ==
        dtype::float32);
}

TEST_CASE("chains of more operands than a node takes with their scales stay", "[rewrite][quantised]") {
  graph_builder b;
  std::vector<value_id> operands{dequantised_input(b, {2, 3})};
  std::vector<tensor> inputs{random_tensor({2, 3}, 1)};
  for (uint32_t i = 1; i < 100; ++i) {
    operands.push_back(b.input(fmt::format("x{}", i), {2, 3}));
    inputs.push_back(random_tensor({2, 3}, 1 + i));
  }
  const attributes sum = to_attributes(elementwise_program{{{scalar_code::add, 0, 99}}, {}});
  b.output(b.call("Elementwise", operands, {"y"}, sum, "troupe")[0]);
  CHECK(count_nodes(check_quantised(b.g, inputs), "troupe.QuantizedElementwise") == 0);
}

TEST_CASE("averages of small planes of bytes are convolutions of bytes", "[rewrite][quantised]") {
  const auto average = [](symbolic_shape dims, bool quantised) {
    graph_builder b;
    value_id y = b.op("GlobalAveragePool", {dequantised_input(b, std::move(dims))});
    if (quantised) {
      const value_id scale = b.scalar(0.0625f),
                     zero = b.constant("zero", tensor::of<int8_t>({}, std::vector<int8_t>{-9}));
      y = b.op("DequantizeLinear", {b.op("QuantizeLinear", {y, scale, zero}), scale, zero});
    }
    b.output(y);
    return b.g;
  };
  // Powers of two are exact.
  const dim batch = dim::symbol("batch"), height = dim::symbol("height");
  for (const bool quantised : {false, true})
    for (const symbolic_shape& dims : {symbolic_shape{2, 3, 2, 4}, {batch, 5, 8, 8}, {batch, 1, 16}, {1, 4, 2, 2, 2}}) {
      shape sizes{2};
      for (const dim& d : std::span(dims).subspan(1))
        sizes.push_back(d.constant());
      sizes[0] = dims[0].is(1) ? 1 : 2;
      const graph fused = check_quantised(average(dims, quantised), {random_tensor(sizes, 3)});
      CHECK(count_nodes(fused, "troupe.QuantizedConv") == 1);
      CHECK(count_nodes(fused, "GlobalAveragePool") == 0);
      CHECK(count_nodes(fused, "DequantizeLinear") == (quantised ? 1 : 0));
    }
  // Larger than the sizes that are unrolled, one whose inverse would decide ties, of unknown size, and empty.
  for (const auto& [dims, sizes] : {std::pair(symbolic_shape{1, 2, 11, 12}, shape{1, 2, 11, 12}),
                                    {symbolic_shape{1, 2, 2, 7}, shape{1, 2, 2, 7}},
                                    {symbolic_shape{1, 2, height, 4}, shape{1, 2, 4, 4}},
                                    {symbolic_shape{1, 0, 4, 4}, shape{1, 0, 4, 4}}})
    CHECK(count_nodes(check_quantised(average(dims, true), {random_tensor(sizes, 3)}), "GlobalAveragePool") == 1);
}
