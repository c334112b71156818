// Bytes whose last bit decides how they are rounded: the same by every kernel, whatever the processor has.
#include "cpu/kernel_check.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace troupe;
using troupe::testing::kernel_check;

namespace {

constexpr float tie_scale = 0.0235f;
constexpr int64_t tie_columns = 300;

/// Weights, scales and biases of columns, whose results of 101 times the weight are beside ties: (k + 1/2) · tie_scale,
/// but for rounding.
struct columns_beside_ties {
  std::vector<int> weights;
  std::vector<float> scales, biases;

  columns_beside_ties() {
    std::minstd_rand random(7);
    std::uniform_real_distribution<float> scale(0.01f, 0.02f);
    for (int64_t c = 0; c < tie_columns; ++c) {
      weights.push_back(1 + static_cast<int>(random() % 127));
      scales.push_back(scale(random));
      const double middle = static_cast<double>(random() % 200) + 0.5;
      const double product =
          101.0 * weights.back() * static_cast<double>(tie_scale) * static_cast<double>(scales.back());
      biases.push_back(static_cast<float>(middle * static_cast<double>(tie_scale) - product));
    }
  }

  /// The call's inputs from A on, which is 101 everywhere; weights are of type T.
  template <class T>
  kernel_check& give_to(kernel_check& check, shape a_dims, shape b_dims, layout l) const {
    tensor a(dtype::uint8, std::move(a_dims)), b(dtype_of<T>, std::move(b_dims));
    std::fill_n(a.mutable_data<uint8_t>(), a.size(), uint8_t{101});
    std::ranges::transform(weights, b.mutable_data<T>(), [](int w) { return static_cast<T>(w); });
    check.input(a, false, l).input(b, true).scalar(dtype::float32, tie_scale);
    check.input(tensor::of<float>({tie_columns}, scales))
        .absent()
        .absent()
        .input(tensor::of<float>({tie_columns}, biases));
    return check.scalar(dtype::float32, tie_scale).scalar(dtype::uint8, 3);
  }
};

} // namespace

TEST_CASE("bytes beside ties are the reference's", "[cpu][quantised]") {
  const columns_beside_ties columns;
  kernel_check product("troupe", "QuantizedMatMul"), with_row_sums("troupe", "QuantizedMatMul");
  columns.give_to<int8_t>(product, {7, 1}, {1, tie_columns}, layout::plain);
  CHECK(product.worst("int8_matmul", 0, 0.25) == 0);
  columns.give_to<uint8_t>(with_row_sums, {7, 1}, {1, tie_columns}, layout::plain);
  CHECK(with_row_sums.worst("int8_matmul", 0, 0.25) == 0);
  attributes each;
  each.set("group", tie_columns);
  kernel_check conv("troupe", "QuantizedConv", each);
  columns.give_to<int8_t>(conv, {1, tie_columns, 1, 5}, {tie_columns, 1, 1, 1}, layout::channels_last);
  CHECK(conv.channels_last_output().worst("int8_depthwise", 0, 0.25) == 0);
}

TEST_CASE("bytes at ties are the reference's", "[cpu][quantised]") {
  // 14 · (2 n + 1) / 256 over 7 / 64 is n + 1/2, but for a product with 64 / 7 as a float.
  tensor weights(dtype::int8, {1, tie_columns}), taps(dtype::int8, {tie_columns, 1, 1, 1});
  for (int64_t c = 0; c < tie_columns; ++c)
    weights.mutable_data<int8_t>()[c] = taps.mutable_data<int8_t>()[c] = static_cast<int8_t>(2 * (c % 60) + 1);
  tensor rows(dtype::uint8, {7, 1}), image(dtype::uint8, {1, tie_columns, 1, 5});
  for (tensor* x : {&rows, &image})
    std::fill_n(x->mutable_data<uint8_t>(), x->size(), uint8_t{14});
  const auto with_scales = [](kernel_check& check) -> kernel_check& {
    check.scalar(dtype::float32, 1.f / 16).scalar(dtype::float32, 1.f / 16).absent().absent().absent();
    return check.scalar(dtype::float32, 7.f / 64).scalar(dtype::uint8, 3);
  };
  kernel_check product("troupe", "QuantizedMatMul");
  CHECK(with_scales(product.input(rows).input(weights, true)).worst("int8_matmul", 0, 0.25) == 0);
  attributes each;
  each.set("group", tie_columns);
  kernel_check conv("troupe", "QuantizedConv", each);
  with_scales(conv.input(image, false, layout::channels_last).input(taps, true));
  CHECK(conv.channels_last_output().worst("int8_depthwise", 0, 0.25) == 0);
}

TEST_CASE("ONNX's own products of bytes are scaled as by the reference", "[cpu][quantised]") {
  // Quotients a hair above a half, or at it if the scales are multiplied in another order.
  tensor rows(dtype::uint8, {25, 1}), image(dtype::uint8, {1, 1, 5, 5});
  for (int i = 0; i < 25; ++i)
    rows.mutable_data<uint8_t>()[i] = image.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(10 * i + 5);
  const auto check = [](const char* op, const tensor& a, shape of_ones, layout l) {
    tensor ones(dtype::int8, std::move(of_ones));
    std::fill_n(ones.mutable_data<int8_t>(), ones.size(), int8_t{1});
    kernel_check made("", op);
    made.input(a, false, l).scalar(dtype::float32, 0.1f).scalar(dtype::uint8, 0).input(ones, true);
    made.scalar(dtype::float32, 0.1f).scalar(dtype::int8, 0).scalar(dtype::float32, 0.1f).scalar(dtype::uint8, 0);
    return made;
  };
  CHECK(check("QLinearMatMul", rows, {1, 20}, layout::plain).worst("int8_matmul", 0, 0.25) == 0);
  kernel_check conv = check("QLinearConv", image, {20, 1, 1, 1}, layout::channels_last);
  CHECK(conv.channels_last_output().worst("int8_conv", 0, 0.25) == 0);
}
