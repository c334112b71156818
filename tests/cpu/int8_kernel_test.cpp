// Kernels over bytes beside the operators' reference: odd sizes, all types, zero points at the ends of their ranges.
#include "cpu/kernel_check.hpp"
#include "ops/composed/fused_elementwise.hpp"
#include "support/catch.hpp"

#include <limits>

using namespace troupe;
using troupe::testing::kernel_check;

namespace {

constexpr std::array byte_kinds{dtype::uint8, dtype::int8};

float lowest(dtype type) {
  return type == dtype::uint8 ? 0.f : -128.f;
}
float highest(dtype type) {
  return type == dtype::uint8 ? 255.f : 127.f;
}

/// Sums of integers must be equal; quantised results may differ by one where scales are not powers of two and a
/// rounding is near a tie.
constexpr double equal = 0.25, one_apart = 1;

struct product_row {
  shape a, b;
};

const product_row products[] = {
    {{1, 1}, {1, 1}},       {{1, 3}, {3, 5}},       {{2, 4}, {4, 16}},         {{5, 17}, {17, 17}},
    {{7, 64}, {64, 65}},    {{13, 130}, {130, 33}}, {{100, 36}, {36, 300}},    {{1, 512}, {512, 96}},
    {{2, 3, 5, 8}, {8, 7}}, {{3, 4, 5}, {3, 5, 6}}, {{2, 1, 4, 9}, {3, 9, 2}}, {{1, 2, 6, 32}, {1, 2, 32, 6}},
};

TEST_CASE("integer products are the reference's", "[cpu][quantised]") {
  for (const product_row& row : products)
    for (const dtype a : byte_kinds)
      for (const dtype b : byte_kinds)
        for (const bool constant : {true, false}) {
          INFO(to_string(row.a) << " " << to_string(row.b) << " " << to_string(a) << " " << to_string(b) << " "
                                << constant);
          kernel_check plain("", "MatMulInteger");
          plain.bytes(a, row.a).bytes(b, row.b, constant);
          CHECK(plain.worst("int8_matmul", 0, equal) == 0);
          for (const bool high : {false, true}) {
            kernel_check with_zeros("", "MatMulInteger");
            with_zeros.bytes(a, row.a).bytes(b, row.b, constant);
            with_zeros.scalar(a, high ? highest(a) : lowest(a)).scalar(b, high ? lowest(b) : highest(b));
            CHECK(with_zeros.worst("int8_matmul", 0, equal) == 0);
          }
          kernel_check by_column("", "MatMulInteger");
          by_column.bytes(a, row.a).bytes(b, row.b, constant).scalar(a, 7).bytes(b, {row.b.back()});
          CHECK(by_column.worst("int8_matmul", 0, equal) == 0);
        }
}

kernel_check qlinear_matmul(const product_row& row, dtype a, dtype b, float scale, bool by_column) {
  kernel_check check("", "QLinearMatMul");
  check.bytes(a, row.a).scalar(dtype::float32, scale).scalar(a, 3).bytes(b, row.b, true);
  if (by_column)
    check.input(shape{row.b.back()}, false, layout::plain, 0.5f * scale, scale).bytes(b, {row.b.back()});
  else
    check.scalar(dtype::float32, scale).scalar(b, 5);
  return check;
}

TEST_CASE("quantised products are the reference's", "[cpu][quantised]") {
  for (const product_row& row : products)
    for (const dtype a : byte_kinds)
      for (const dtype y : byte_kinds) {
        INFO(to_string(row.a) << " " << to_string(row.b) << " " << to_string(a) << " " << to_string(y));
        // Powers of two are exact, ties included.
        CHECK(qlinear_matmul(row, a, dtype::int8, 0.0625f, false)
                  .scalar(dtype::float32, 2.f)
                  .scalar(y, highest(y) - 60)
                  .worst("int8_matmul", 0, equal) == 0);
        CHECK(qlinear_matmul(row, a, dtype::uint8, 0.03f, true)
                  .scalar(dtype::float32, 1.7f)
                  .scalar(y, lowest(y))
                  .worst("int8_matmul", 0, one_apart) <= 1);
      }
}

/// troupe.QuantizedMatMul or QuantizedConv after A and B: scales, zero points, bias, and perhaps the result's.
kernel_check& with_ends(kernel_check& check, dtype a, dtype b, int64_t columns, bool by_column, bool bias,
                        const dtype* y) {
  check.scalar(dtype::float32, 0.03125f);
  if (by_column)
    check.input(shape{columns}, false, layout::plain, 0.01f, 0.02f)
        .scalar(a, highest(a) - 100)
        .bytes(b, {columns}, true);
  else
    check.scalar(dtype::float32, 0.0625f).scalar(a, highest(a) - 100).absent();
  if (bias)
    check.input(shape{columns}, false, layout::plain, -3, 3);
  else
    check.absent();
  if (y)
    check.scalar(dtype::float32, 0.5f).scalar(*y, lowest(*y) + 40);
  return check;
}

attributes with_activation(attributes attrs, const char* name, float alpha = 0, float beta = 0) {
  attrs.set("activation", std::string(name));
  attrs.set("activation_alpha", alpha);
  attrs.set("activation_beta", beta);
  return attrs;
}

TEST_CASE("fused products of bytes are the reference's", "[cpu][quantised]") {
  for (const product_row& row : products)
    for (const dtype a : byte_kinds)
      for (const bool by_column : {false, true})
        for (const bool bias : {false, true}) {
          INFO(to_string(row.a) << " " << to_string(row.b) << " " << to_string(a) << " " << by_column << bias);
          const int64_t columns = row.b.back();
          kernel_check real("troupe", "QuantizedMatMul", with_activation({}, "Gelu"));
          real.bytes(a, row.a).bytes(dtype::int8, row.b, true);
          CHECK(with_ends(real, a, dtype::int8, columns, by_column, bias, nullptr).worst("int8_matmul") <= 1);
          const dtype y = by_column ? dtype::uint8 : dtype::int8;
          kernel_check bytes("troupe", "QuantizedMatMul", with_activation({}, "Clip", -2, 30));
          bytes.bytes(a, row.a).bytes(dtype::uint8, row.b, true);
          CHECK(with_ends(bytes, a, dtype::uint8, columns, by_column, bias, &y)
                    .worst("int8_matmul", 0, by_column || bias ? one_apart : equal) <= (by_column || bias ? 1 : 0));
        }
}

tensor floats_in(shape dims, const std::vector<float>& values) {
  return tensor::of<float>(std::move(dims), values);
}

/// One row of −1, times 18 columns of 1, under these scales.
kernel_check product_of_ones(std::vector<float> scales, attributes attrs = {}) {
  tensor a(dtype::int8, {1, 4}), b(dtype::int8, {4, 18});
  std::fill_n(a.mutable_data<int8_t>(), a.size(), int8_t{-1});
  std::fill_n(b.mutable_data<int8_t>(), b.size(), int8_t{1});
  scales.resize(18, 1.f);
  kernel_check check("troupe", "QuantizedMatMul", std::move(attrs));
  check.input(a).input(b, true).scalar(dtype::float32, 1).input(floats_in({18}, scales)).absent().absent().absent();
  return check;
}

TEST_CASE("results beyond all integers end at their side of the bytes", "[cpu][quantised]") {
  for (const float zero : {-1.f, 1.f, -128.f, 127.f})
    for (const float sign : {-1.f, 1.f}) {
      INFO(zero << " " << sign);
      CHECK(product_of_ones(std::vector<float>(18, sign))
                .scalar(dtype::float32, 1e-9f)
                .scalar(dtype::int8, zero)
                .worst("int8_matmul", 0, equal) == 0);
    }
}

TEST_CASE("results that are not numbers are the reference's", "[cpu][quantised]") {
  const std::vector<float> scales{NAN, INFINITY, -INFINITY, 2, -2};
  for (const attributes& attrs : {attributes(), with_activation({}, "Relu"), with_activation({}, "Clip", -1, 3)}) {
    INFO(attrs.text("activation", "none"));
    CHECK(product_of_ones(scales, attrs).worst("int8_matmul") <= 1);
    for (const float zero : {-1.f, 1.f})
      CHECK(product_of_ones(scales, attrs)
                .scalar(dtype::float32, 1)
                .scalar(dtype::int8, zero)
                .worst("int8_matmul", 0, equal) == 0);
  }
}

struct conv_row {
  shape x, w;
  int64_t group = 1;
  std::vector<int64_t> strides = {}, pads = {}, dilations = {};

  attributes attrs() const {
    attributes a;
    a.set("group", group);
    if (!strides.empty())
      a.set("strides", strides);
    if (!pads.empty())
      a.set("pads", pads);
    if (!dilations.empty())
      a.set("dilations", dilations);
    return a;
  }
};

const conv_row convolutions[] = {
    {{1, 4, 5, 5}, {8, 4, 1, 1}},
    {{2, 3, 7, 9}, {5, 3, 3, 3}, 1, {2, 2}, {1, 1, 1, 1}},
    {{1, 16, 6, 6}, {17, 16, 3, 3}, 1, {}, {1, 1, 1, 1}},
    {{1, 8, 9, 9}, {6, 4, 3, 3}, 2, {1, 2}, {0, 1, 2, 1}},
    {{1, 6, 10, 8}, {4, 6, 3, 2}, 1, {}, {2, 0, 1, 3}, {2, 3}},
    {{2, 8, 11}, {9, 8, 3}, 1, {2}, {1, 1}},
    {{1, 4, 3, 4, 5}, {6, 4, 2, 3, 2}, 1, {1, 2, 1}, {1, 1, 0, 0, 1, 1}},
    {{1, 32, 14, 14}, {70, 32, 1, 1}, 1, {2, 2}},
};

const conv_row depthwise[] = {
    {{1, 1, 5, 5}, {1, 1, 3, 3}, 1},
    {{2, 5, 6, 7}, {5, 1, 3, 3}, 5, {}, {1, 1, 1, 1}},
    {{1, 64, 9, 9}, {64, 1, 3, 3}, 64, {2, 2}, {1, 1, 1, 1}},
    {{1, 100, 8, 8}, {100, 1, 5, 5}, 100, {1, 2}, {2, 2, 2, 2}},
    {{1, 130, 9}, {130, 1, 4}, 130, {}, {3, 0}, {2}},
    {{2, 70, 130}, {70, 1, 3}, 70, {}, {40, 40}, {40}}, // taps further apart than columns are interleaved
    {{1, 5, 3, 90}, {5, 1, 3, 3}, 5, {1, 2}, {1, 50, 1, 50}, {1, 50}},
};

void check_conv(const conv_row& row, const char* kernel, dtype a, dtype b, float b_zero) {
  INFO(to_string(row.x) << " " << to_string(row.w) << " " << to_string(a) << " " << to_string(b) << " " << kernel);
  for (const bool high : {false, true}) {
    kernel_check sums("", "ConvInteger", row.attrs());
    sums.bytes(a, row.x, false, layout::channels_last).bytes(b, row.w, true).scalar(a, high ? highest(a) : lowest(a));
    tensor zero(b, {});
    if (b == dtype::uint8)
      *zero.mutable_data<uint8_t>() = static_cast<uint8_t>(b_zero);
    else
      *zero.mutable_data<int8_t>() = static_cast<int8_t>(b_zero);
    sums.input(zero, true).channels_last_output();
    CHECK(sums.worst(kernel, 0, equal) == 0);
  }
  kernel_check linear("", "QLinearConv", row.attrs());
  linear.bytes(a, row.x, false, layout::channels_last)
      .scalar(dtype::float32, 0.0625f)
      .scalar(a, 9)
      .bytes(b, row.w, true);
  linear.scalar(dtype::float32, 0.25f);
  tensor zero(b, {});
  if (b == dtype::uint8)
    *zero.mutable_data<uint8_t>() = static_cast<uint8_t>(b_zero);
  else
    *zero.mutable_data<int8_t>() = static_cast<int8_t>(b_zero);
  linear.input(zero, true).scalar(dtype::float32, 4.f).scalar(a, lowest(a) + 100);
  tensor bias(dtype::int32, {row.w[0]});
  for (int64_t i = 0; i < bias.size(); ++i)
    bias.mutable_data<int32_t>()[i] = static_cast<int32_t>(i * 37 - 500);
  linear.input(bias).channels_last_output();
  CHECK(linear.worst(kernel, 0, equal) == 0);
}

TEST_CASE("convolutions of bytes are the reference's", "[cpu][quantised]") {
  for (const dtype a : byte_kinds)
    for (const dtype b : byte_kinds) {
      for (const conv_row& row : convolutions)
        for (const float zero : {lowest(b), lowest(b) + 128, highest(b)})
          check_conv(row, "int8_conv", a, b, zero);
      for (const conv_row& row : depthwise) {
        check_conv(row, "int8_conv", a, b, highest(b));
        check_conv(row, "int8_depthwise", a, b, lowest(b) + 128);
      }
    }
}

TEST_CASE("fused convolutions of bytes are the reference's", "[cpu][quantised]") {
  for (const conv_row& row : convolutions)
    for (const dtype a : byte_kinds) {
      INFO(to_string(row.x) << " " << to_string(row.w) << " " << to_string(a));
      const dtype y = a;
      kernel_check real("troupe", "QuantizedConv", with_activation(row.attrs(), "Relu"));
      real.bytes(a, row.x, false, layout::channels_last).bytes(dtype::int8, row.w, true);
      CHECK(with_ends(real, a, dtype::int8, row.w[0], true, true, nullptr).channels_last_output().worst("int8_conv") <=
            1);
      kernel_check bytes("troupe", "QuantizedConv", row.attrs());
      bytes.bytes(a, row.x, false, layout::channels_last).bytes(dtype::int8, row.w, true);
      CHECK(with_ends(bytes, a, dtype::int8, row.w[0], false, false, &y)
                .channels_last_output()
                .worst("int8_conv", 0, equal) == 0);
    }
}

/// Appends the operands of a product that ends in a sum: a residual of type `r` and a result of type `z`, without zero
/// points if these are 0.
kernel_check& with_sum(kernel_check& check, shape y, layout l, dtype r, dtype z, bool zeros) {
  check.bytes(r, std::move(y), false, l).scalar(dtype::float32, 0.0625f);
  if (zeros)
    check.scalar(r, lowest(r) + 100);
  else
    check.absent();
  check.scalar(dtype::float32, 0.125f);
  return zeros || z == dtype::int8 ? check.scalar(z, lowest(z) + 90) : check.absent();
}

TEST_CASE("products and convolutions of bytes that end in a sum are the reference's", "[cpu][quantised]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [low, high] : {std::pair(-infinity, infinity), std::pair(0.f, infinity), std::pair(-1.f, 1.5f)})
    for (const dtype y : byte_kinds)
      for (const dtype z : byte_kinds)
        for (const bool zeros : {false, true}) {
          INFO(low << " " << high << " " << to_string(y) << " " << to_string(z) << " " << zeros);
          attributes attrs;
          attrs.set("sum_low", low);
          attrs.set("sum_high", high);
          kernel_check product("troupe", "QuantizedMatMul", attrs);
          product.bytes(z, {7, 64}).bytes(dtype::int8, {64, 65}, true);
          with_ends(product, z, dtype::int8, 65, false, false, &y);
          CHECK(with_sum(product, {7, 65}, layout::plain, y, z, zeros).worst("int8_sum", 0, equal) == 0);
          attrs.set("pads", std::vector<int64_t>(4, 1));
          kernel_check conv("troupe", "QuantizedConv", attrs);
          conv.bytes(dtype::uint8, {2, 8, 6, 5}, false, layout::channels_last).bytes(dtype::int8, {12, 8, 3, 3}, true);
          with_ends(conv, dtype::uint8, dtype::int8, 12, false, false, &y);
          with_sum(conv, {2, 12, 6, 5}, layout::channels_last, z, z, zeros).channels_last_output();
          CHECK(conv.worst("int8_sum", 0, equal) == 0);
        }
}

TEST_CASE("depthwise weights that leave 8 bits without their zero point are not taken", "[cpu][quantised]") {
  kernel_check check("", "ConvInteger", depthwise[1].attrs());
  check.bytes(dtype::uint8, depthwise[1].x, false, layout::channels_last)
      .bytes(dtype::uint8, depthwise[1].w, true)
      .channels_last_output();
  CHECK_THROWS(check.worst("int8_depthwise"));
}

TEST_CASE("planes of bytes become pixels", "[cpu][quantised]") {
  for (const dtype type : byte_kinds)
    for (const shape& dims : {shape{1, 2, 1}, {2, 3, 5, 7}, {1, 4, 2, 3, 4}, {1, 3, 130, 301}, {1, 3, 0, 4}}) {
      INFO(to_string(dims));
      attributes attrs;
      attrs.set("to", "channels_last");
      kernel_check check("troupe", "Reorder", attrs);
      check.bytes(type, dims);
      CHECK(check.worst("channel_interleave", 0, equal) == 0);
    }
}

TEST_CASE("quantised elementwise chains are the reference's", "[cpu][quantised]") {
  elementwise_program program{{{scalar_code::add, 0, 1}, {scalar_code::relu, 2}, {scalar_code::multiply, 3, -1}},
                              {0.75f}};
  for (const auto& [x, y] : std::vector<std::array<shape, 2>>{
           {shape{3, 5}, shape{3, 5}}, {shape{2, 3000}, shape{1}}, {shape{4, 7, 9}, shape{7, 1}}})
    for (const dtype a : byte_kinds)
      for (const bool quantised : {false, true}) {
        INFO(to_string(x) << " " << to_string(y) << " " << to_string(a) << quantised);
        attributes attrs = to_attributes(program);
        attrs.set("operands", int64_t{2});
        kernel_check check("troupe", "QuantizedElementwise", attrs);
        check.bytes(a, x).scalar(dtype::float32, 0.037f).scalar(a, lowest(a) + 11);
        check.input(y).absent().absent();
        if (quantised)
          check.scalar(dtype::float32, 0.05f).scalar(a, highest(a) - 20);
        CHECK(check.worst("int8_elementwise", 1e-5, quantised ? one_apart : 1e-5) <= 1);
      }
}

TEST_CASE("quantising with one scale is the reference's", "[cpu][quantised]") {
  for (const dtype y : byte_kinds)
    for (const int64_t size : {1, 63, 5000, 100'000})
      for (const float zero : {lowest(y), highest(y) - 3}) {
        INFO(to_string(y) << " " << size << " " << zero);
        kernel_check check("", "QuantizeLinear");
        check.input(shape{size}, false, layout::plain, -40, 40).scalar(dtype::float32, 0.25f).scalar(y, zero);
        CHECK(check.worst("quantize", 0, equal) == 0);
      }
  kernel_check without_zero("", "QuantizeLinear");
  without_zero.input(shape{3, 70}, false, layout::plain, -1, 9).scalar(dtype::float32, 0.03f);
  CHECK(without_zero.worst("quantize", 0, equal) == 0);
  CHECK_THROWS(kernel_check("", "QuantizeLinear").input({3, 4}).input({4}).worst("quantize"));
  attributes half;
  half.set("precision", int64_t{10}); // the quotient is a float16
  CHECK_THROWS(kernel_check("", "QuantizeLinear", half).input({3, 4}).scalar(dtype::float32, 1).worst("quantize"));
}

TEST_CASE("dynamic quantisation is the reference's", "[cpu][quantised]") {
  for (const int64_t size : {1, 63, 64, 1000, 100'000})
    for (const float low : {-1.f, 0.5f, -0.f}) {
      INFO(size << " from " << low);
      kernel_check check("", "DynamicQuantizeLinear");
      check.input(shape{size}, false, layout::plain, low, low + 3);
      CHECK(check.worst("dynamic_quantize", 0, equal, 3) == 0);
    }
}

TEST_CASE("products with packed weights are the reference's", "[cpu][quantised]") {
  for (const int64_t bits : {4, 8})
    for (const int64_t block : {16, 32, 128})
      for (const int64_t rows : {1, 2, 3, 4, 5, 40})
        for (const int64_t k : {16, 100, 256})
          for (const int zeros : {0, 1, 2}) {
            INFO(bits << " bits, blocks of " << block << ", " << rows << " rows, K " << k << ", zeros " << zeros);
            const int64_t n = 37, blocks = (k + block - 1) / block;
            attributes attrs;
            attrs.set("K", k);
            attrs.set("N", n);
            attrs.set("bits", bits);
            attrs.set("block_size", block);
            kernel_check check("com.microsoft", "MatMulNBits", attrs);
            check.input(shape{rows, k})
                .bytes(dtype::uint8, {n, blocks, block * bits / 8}, true)
                .input(shape{n, blocks}, false, layout::plain, 0.01f, 0.02f);
            if (zeros == 0)
              check.absent();
            else if (zeros == 1)
              check.bytes(dtype::uint8, {n * ((blocks * bits + 7) / 8)});
            else
              check.input(shape{n, blocks}, false, layout::plain, 0, 15);
            check.absent().input(shape{n});
            CHECK(check.worst("matmul_nbits", 1e-4, 1e-3) <= 1);
          }
}

} // namespace
