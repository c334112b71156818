// Launch rules of products and convolutions of bytes on fabricated devices. Results are tested on a device.
#include "launch/parameters.hpp"
#include "ops/evaluate.hpp"
#include "ops/pack.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/fabricated_gpu.hpp"
#include "support/operator_launches.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

gpu_features gpu_with(bool dot, bool matrices) {
  gpu_features gpu = h100_like();
  gpu.int8 = true;
  gpu.integer_dot = dot;
  gpu.byte_matrices = matrices;
  return gpu;
}

operand make(shape dims, dtype type, layout l = layout::plain) {
  return {.type = type, .dims = std::move(dims), .layout = l};
}

operand constant(shape dims, dtype type) {
  operand o = make(std::move(dims), type);
  auto w = std::make_shared<weight>(); // its bytes are not asked for
  w->type = type;
  w->dims = o.dims;
  o.constant = std::move(w);
  return o;
}

/// Inputs from A's scale on: one for all columns, no bias, uint8 results.
std::vector<operand> operands(operand a, operand b, bool a_zero, bool b_zero) {
  const dtype left = a.type, right = b.type;
  const operand scale = make({}, dtype::float32);
  return {std::move(a),
          std::move(b),
          scale,
          scale,
          a_zero ? make({}, left) : operand{},
          b_zero ? make({}, right) : operand{},
          operand{},
          scale,
          make({}, dtype::uint8)};
}

std::vector<std::string> names(const launch_lists& lists) {
  std::vector<std::string> all;
  for (const launch_list& list : lists)
    all.push_back(list.name);
  return all;
}

using list = std::vector<std::string>;

launch_lists matmul(const gpu_features& gpu, dtype b_type, bool constant_b, bool b_zero) {
  const attributes none;
  const operand b = constant_b ? constant({64, 32}, b_type) : make({64, 32}, b_type);
  return troupe_launches(
      "QuantizedMatMul",
      {none, operands(make({100, 64}, dtype::uint8), b, true, b_zero), {make({100, 32}, dtype::uint8)}, gpu});
}

} // namespace

TEST_CASE("Bytes are multiplied by the instructions that the device has for that, the plain kernel last",
          "[ops][quantised]") {
  const list plain{"quantized_matmul.plain"}, dot{"quantized_matmul.dot", "quantized_matmul.plain"},
      all{"quantized_matmul.cooperative", "quantized_matmul.dot", "quantized_matmul.plain"};
  CHECK(names(matmul(gpu_with(false, false), dtype::int8, true, false)) == plain);
  CHECK(names(matmul(gpu_with(true, false), dtype::int8, true, false)) == dot);
  CHECK(names(matmul(gpu_with(true, true), dtype::int8, true, false)) == all);
  // Matrices are for constant weights about 0 only.
  CHECK(names(matmul(gpu_with(true, true), dtype::int8, true, true)) == dot);
  CHECK(names(matmul(gpu_with(true, true), dtype::uint8, true, false)) == dot);
  CHECK(names(matmul(gpu_with(true, true), dtype::int8, false, false)) == dot);
  gpu_features narrow = gpu_with(true, true);
  narrow.subgroup_size = 64;
  CHECK(names(matmul(narrow, dtype::int8, true, false)) == dot);
  narrow.int8 = false;
  CHECK(matmul(narrow, dtype::int8, true, false).empty());
}

TEST_CASE("Constant bytes stay bytes on a GPU, with the sums of their columns", "[ops][quantised]") {
  for (const launch_list& l : matmul(gpu_with(true, true), dtype::int8, true, false)) {
    REQUIRE(l.packed.size() == 2);
    CHECK(l.packed[0]->type == dtype::int8);
    CHECK(l.packed[0]->dims == shape{32, 64});
    CHECK(l.packed[1]->type == dtype::int32);
    CHECK(l.packed[1]->dims == shape{32});
    for (const launch_binding& b : l.launches.at(0).bindings)
      CHECK_FALSE((b.from == launch_binding::source::input && b.index == 1));
  }
  for (const launch_list& l : matmul(gpu_with(true, true), dtype::int8, true, true))
    CHECK(l.packed.size() == 1); // with a zero point of B, a kernel sums columns and rows itself
}

TEST_CASE("Tiles cover products of bytes, whose depths are whole words of the tile", "[ops][quantised]") {
  for (const launch_list& list : matmul(gpu_with(true, true), dtype::int8, true, false)) {
    const launch& l = list.launches.at(0);
    CHECK(l.groups[0] * l.constants.at(1) >= 100);
    CHECK(l.groups[1] * l.constants.at(2) >= 32);
    CHECK(l.constants.at(3) % 32 == 0); // a matrix's depth, or two vectors
    CHECK(l.params.at(3) >= 64);        // one range of depths: sums of bytes are not split
    CHECK(l.params.at(4) == 1);
  }
}

TEST_CASE("Convolutions of bytes choose their kernel", "[ops][quantised]") {
  const gpu_features gpu = gpu_with(true, true);
  const auto kernels = [&](shape x, shape w, shape y, int64_t group, layout l) {
    attributes attrs;
    attrs.set("group", group);
    attrs.set("pads", std::vector<int64_t>(2 * (w.size() - 2), w[2] / 2));
    return names(troupe_launches("QuantizedConv", {attrs,
                                                   operands(make(std::move(x), dtype::uint8, l),
                                                            constant(std::move(w), dtype::int8), true, false),
                                                   {make(std::move(y), dtype::uint8, l)},
                                                   gpu}));
  };
  using enum layout;
  const list product{"quantized_matmul.cooperative", "quantized_matmul.dot", "quantized_matmul.plain"},
      implicit{"quantized_conv.cooperative", "quantized_conv.dot", "quantized_conv.plain"};
  CHECK(kernels({1, 32, 8, 8}, {16, 32, 1, 1}, {1, 16, 8, 8}, 1, channels_last) == product);
  CHECK(kernels({1, 32, 8, 8}, {16, 32, 1, 1}, {1, 16, 8, 8}, 1, plain) == implicit);
  CHECK(kernels({1, 32, 8, 8}, {16, 32, 3, 3}, {1, 16, 8, 8}, 1, channels_last) == implicit);
  list depthwise{"quantized_depthwise"};
  depthwise.insert(depthwise.end(), implicit.begin(), implicit.end());
  CHECK(kernels({1, 32, 8, 8}, {32, 1, 3, 3}, {1, 32, 8, 8}, 32, channels_last) == depthwise);
  // Three channels are gathered as well from planes.
  CHECK(kernels({1, 3, 8, 8}, {32, 3, 3, 3}, {1, 32, 8, 8}, 1, plain) == implicit);
  // Matrices do not pay for so short a depth if there are many tiles.
  const list many{"quantized_conv.dot", "quantized_conv.cooperative", "quantized_conv.plain"};
  CHECK(kernels({32, 3, 112, 112}, {32, 3, 3, 3}, {32, 32, 112, 112}, 1, plain) == many);
  CHECK(kernels({32, 4, 112, 112}, {32, 4, 3, 3}, {32, 32, 112, 112}, 1, plain) == implicit);
}

TEST_CASE("Bytes have tiles of their own", "[ops][quantised]") {
  const attributes none;
  const gpu_features gpu = gpu_with(true, true);
  const auto tile_of = [&](int64_t rows, int64_t depth, int64_t columns) {
    const launch_lists lists = troupe_launches(
        "QuantizedMatMul",
        {none,
         operands(make({rows, depth}, dtype::uint8), constant({depth, columns}, dtype::int8), true, false),
         {make({rows, columns}, dtype::uint8)},
         gpu});
    const std::vector<uint32_t>& c = lists.at(0).launches.at(0).constants;
    return std::vector<uint32_t>{c.at(1), c.at(2), c.at(3)};
  };
  using tile = std::vector<uint32_t>;
  CHECK(tile_of(100352, 24, 144) == tile{256, 128, 64}); // their epilogues take longer than those of float16
  CHECK(tile_of(100352, 144, 24) == tile{32, 32, 128});
  CHECK(tile_of(196, 64, 384) == tile{32, 32, 128});
}

TEST_CASE("Single scales and zero points are in the block if all are constant, and make no pipeline",
          "[ops][quantised]") {
  const attributes none;
  const gpu_features gpu = gpu_with(true, true);
  std::vector<operand> in = operands(make({100, 64}, dtype::uint8), make({64, 32}, dtype::int8), true, false);
  const auto made = [&] {
    return troupe_launches("QuantizedMatMul", {none, in, {make({100, 32}, dtype::uint8)}, gpu}).at(0).launches.at(0);
  };
  const auto knows = [](const launch& l) { return (l.constants.at(8) & shader::quantized_known) != 0; };
  in[2].constant = weight::from_tensor(tensor::of<float>({}, std::vector<float>{0.3f}));
  in[4].constant = weight::from_tensor(tensor::of<uint8_t>({}, std::vector<uint8_t>{121}));
  in[7].constant = weight::from_tensor(tensor::of<float>({}, std::vector<float>{0.7f}));
  const launch open = made(); // y's zero point is not constant
  CHECK_FALSE(knows(open));
  CHECK(open.read_words == 0);
  CHECK(open.params.size() <= shader::quantized_numbers_at);

  in[8].constant = weight::from_tensor(tensor::of<uint8_t>({}, std::vector<uint8_t>{99}));
  const launch known = made();
  CHECK(knows(known));
  REQUIRE(known.params.size() == static_cast<size_t>(shader::quantized_numbers_at + known.read_words));
  CHECK(std::equal(open.params.begin(), open.params.end(), known.params.begin()));
  const auto number = [&](size_t i) { return known.params.at(shader::quantized_numbers_at + i); };
  CHECK((number(0) == float_bits(0.3f) && number(1) == float_bits(0.7f) && number(4) == float_bits(1 / 0.7f)));
  CHECK((number(6) == 121 && number(7) == 99 && number(8) == 0 && number(9) == 0));
}

TEST_CASE("A sum with a residual ends products of bytes, but no kernel for one channel a group", "[ops][quantised]") {
  using enum layout;
  attributes attrs;
  attrs.set("sum_low", 0.f);
  attrs.set("sum_high", 6.f);
  const gpu_features gpu = gpu_with(true, false);
  const auto kernels = [&](shape w, const operand& y, const operand& r) {
    attrs.set("group", 32 / w[1]);
    std::vector<operand> in =
        operands(make({1, 32, 8, 8}, dtype::uint8, channels_last), constant(w, dtype::int8), true, false);
    const operand scale = make({}, dtype::float32);
    in.insert(in.end(), {r, scale, operand{}, scale, operand{}});
    const launch_lists lists = troupe_launches("QuantizedConv", {attrs, in, {y}, gpu});
    for (const launch_list& l : lists) {
      CHECK((l.launches.at(0).constants.at(8) & shader::product_residual) != 0);
      // Where a product's factors come otherwise: limits of the sum.
      CHECK(l.launches.at(0).params.at(12) == float_bits(0));
      CHECK(l.launches.at(0).params.at(13) == float_bits(6));
    }
    return names(lists);
  };
  const operand y = make({1, 32, 8, 8}, dtype::uint8, channels_last),
                same = make({1, 32, 8, 8}, dtype::int8, channels_last);
  const list product{"quantized_matmul.dot", "quantized_matmul.plain"},
      implicit{"quantized_conv.dot", "quantized_conv.plain"};
  CHECK(kernels({32, 32, 1, 1}, y, same) == product);
  CHECK(kernels({32, 16, 1, 1}, y, same) == implicit);
  CHECK(kernels({32, 1, 1, 1}, y, same) == implicit);
  // Residuals of another layout, of another size, or that are not bytes.
  CHECK(kernels({32, 32, 1, 1}, y, make({1, 32, 8, 8}, dtype::int8, plain)).empty());
  CHECK(kernels({32, 32, 1, 1}, y, make({1, 32, 1, 1}, dtype::int8)).empty());
  CHECK(kernels({32, 32, 1, 1}, y, make({1, 32, 8, 8}, dtype::float32, channels_last)).empty());
}

TEST_CASE("Rows of a weight are summed", "[ops][quantised]") {
  const weight_ptr w = weight::from_tensor(tensor::of<int8_t>({2, 3}, std::vector<int8_t>{1, -2, 127, -128, -128, 5}));
  const tensor sums = materialise(*sum_rows(w));
  REQUIRE(sums.type() == dtype::int32);
  REQUIRE(sums.dims() == shape{2});
  CHECK(sums.data<int32_t>()[0] == 126);
  CHECK(sums.data<int32_t>()[1] == -251);
}
