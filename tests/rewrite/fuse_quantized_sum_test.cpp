// Sums of bytes that become the end of a product or convolution: the rewritten model gives the model's bytes.
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t channels = 4;

/// A scale and a zero point.
struct quantisation {
  value_id scale, zero; // no_value: none, bytes are uint8
};

/// The quantised models of these tests. All numbers are powers of two and so exact.
struct sum_builder : graph_builder {
  quantisation quantised(float scale, int zero, dtype type = dtype::uint8) {
    const std::string name = fmt::format("zero{}", g.values.size());
    return {this->scalar(scale), type == dtype::uint8
                                     ? constant(name, tensor::of<uint8_t>({}, std::vector{static_cast<uint8_t>(zero)}))
                                     : constant(name, tensor::of<int8_t>({}, std::vector{static_cast<int8_t>(zero)}))};
  }

  std::vector<value_id> with(value_id v, const quantisation& q) const {
    return q.zero == no_value ? std::vector{v, q.scale} : std::vector{v, q.scale, q.zero};
  }
  value_id bytes(value_id v, const quantisation& q) { return op("QuantizeLinear", with(v, q)); }
  value_id real(value_id v, const quantisation& q) { return op("DequantizeLinear", with(v, q)); }
  /// v, quantised and dequantised.
  value_id rounded(value_id v, const quantisation& q) { return real(bytes(v, q), q); }

  /// Dequantised weights that mix all channels, other ones at each call.
  value_id weights(shape dims) {
    std::vector<int8_t> codes;
    for (int64_t i = 0; i < volume(dims); ++i)
      codes.push_back(static_cast<int8_t>((i * 37 + std::ssize(g.values)) % 101 - 50));
    return op("DequantizeLinear",
              {constant(fmt::format("w{}", g.values.size()), tensor::of<int8_t>(std::move(dims), codes)),
               this->scalar(1.f / 256)});
  }
  value_id conv(value_id x, int64_t group = 1) {
    return op("Conv", {x, weights({channels, channels / group, 1, 1})}, attrs_of({{"group", group}}));
  }
};

/// How a model's sum is made.
struct sum_case {
  bool swapped = false;
  std::string end = ""; // operator between sum and quantisation
  dtype own = dtype::uint8, other = dtype::uint8, sum = dtype::uint8;
  bool product = false; // a MatMul instead of a Conv
};

symbolic_shape dims_of(const sum_case& s, const dim& batch) {
  return s.product ? symbolic_shape{batch, 3, channels} : symbolic_shape{batch, channels, 3, 2};
}

/// x + product(x), all of it bytes of their own scales and zero points; output 0 are floats.
sum_builder residual_model(const sum_case& s, const dim& batch = 2) {
  sum_builder b;
  const quantisation from = b.quantised(0.03125f, s.other == dtype::uint8 ? 131 : -7, s.other),
                     own = b.quantised(0.0078125f, s.own == dtype::uint8 ? 120 : 5, s.own),
                     to = b.quantised(0.015625f, s.sum == dtype::uint8 ? 100 : -20, s.sum);
  const value_id x = b.rounded(b.input("x", dims_of(s, batch)), from);
  const value_id product = s.product ? b.op("MatMul", {x, b.weights({channels, channels})}) : b.conv(x);
  const value_id y = b.rounded(product, own);
  value_id sum = b.op("Add", s.swapped ? std::vector{x, y} : std::vector{y, x});
  if (s.end == "Clip")
    sum = b.op("Clip", {sum, b.scalar(-0.5f), b.scalar(0.75f)});
  else if (!s.end.empty())
    sum = b.op(s.end, {sum});
  b.output(b.rounded(sum, to));
  return b;
}

/// Requires that the rewritten model gives the model's results bit by bit; returns it.
graph check_exact(const graph& g, const std::vector<tensor>& inputs) {
  graph fused = rewrite(g, {});
  const std::vector<tensor> want = run_graph(inferred(g), inputs), got = run_graph(fused, inputs);
  REQUIRE(want.size() == got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    REQUIRE(want[i].dims() == got[i].dims());
    CHECK(values_of(got[i]) == values_of(want[i]));
  }
  return fused;
}

size_t products(const graph& g) {
  return count_nodes(g, "troupe.QuantizedConv") + count_nodes(g, "troupe.QuantizedMatMul");
}

const std::string chain = "troupe.QuantizedElementwise";

const std::vector<tensor> image{random_tensor({2, channels, 3, 2}, 5)};

} // namespace

TEST_CASE("a sum with a residual becomes the end of a product of bytes", "[rewrite][quantised]") {
  constexpr dtype u8 = dtype::uint8, i8 = dtype::int8;
  const std::vector<tensor> rows{random_tensor({2, 3, channels}, 5)};
  for (const sum_case& s : {sum_case{}, sum_case{.swapped = true}, sum_case{.end = "Relu"}, sum_case{.end = "Clip"},
                            sum_case{.own = i8, .other = u8, .sum = i8}, sum_case{.own = u8, .other = i8, .sum = u8},
                            sum_case{.swapped = true, .end = "Relu", .own = i8, .other = i8, .sum = u8},
                            sum_case{.product = true}, sum_case{.end = "Clip", .sum = i8, .product = true}}) {
    INFO(s.swapped << s.end << to_string(s.own) << to_string(s.other) << to_string(s.sum) << s.product);
    const graph fused = check_exact(residual_model(s).g, s.product ? rows : image);
    CHECK(products(fused) == 1);
    CHECK(count_nodes(fused, chain) == 0);
  }
}

TEST_CASE("sums end products of symbolic dims", "[rewrite][quantised]") {
  const graph fused = check_exact(residual_model({}, dim::symbol("batch")).g, image);
  CHECK(products(fused) == 1);
  CHECK(count_nodes(fused, chain) == 0);
}

TEST_CASE("a residual that other nodes read too stays as it is", "[rewrite][quantised]") {
  sum_builder b;
  const quantisation q = b.quantised(0.03125f, 128);
  const value_id x = b.rounded(b.input("x", {2, channels, 3, 2}), q);
  const value_id first = b.rounded(b.op("Add", {b.rounded(b.conv(x), q), x}), q);
  const value_id second = b.rounded(b.op("Add", {first, b.rounded(b.conv(first), q)}), q);
  b.output(second);
  b.output(first);
  const graph fused = check_exact(b.g, image);
  CHECK(products(fused) == 2);
  CHECK(count_nodes(fused, chain) == 0);
}

TEST_CASE("of two products that are summed one ends in the sum", "[rewrite][quantised]") {
  sum_builder b;
  const quantisation q = b.quantised(0.03125f, 128), own = b.quantised(0.015625f, 90);
  const value_id x = b.rounded(b.input("x", {2, channels, 3, 2}), q);
  b.output(b.rounded(b.op("Add", {b.rounded(b.conv(x), own), b.rounded(b.conv(x), q)}), q));
  const graph fused = check_exact(b.g, image);
  CHECK(products(fused) == 2);
  CHECK(count_nodes(fused, chain) == 0);
}

TEST_CASE("a product whose own bytes are read elsewhere does not end in a sum", "[rewrite][quantised]") {
  for (const bool as_output : {false, true}) {
    sum_builder b;
    const quantisation q = b.quantised(0.03125f, 128);
    const value_id x = b.rounded(b.input("x", {2, channels, 3, 2}), q), y = b.bytes(b.conv(x), q);
    b.output(b.rounded(b.op("Add", {b.real(y, q), x}), q));
    b.output(as_output ? b.op("Cast", {y}, attrs_of({{"to", int64_t{1}}})) : b.rounded(b.conv(b.real(y, q)), q));
    CHECK(count_nodes(check_exact(b.g, image), chain) == 1);
  }
}

TEST_CASE("sums that a product cannot end in stay", "[rewrite][quantised]") {
  const auto chains = [](auto&& make) {
    sum_builder b;
    const quantisation q = b.quantised(0.03125f, 128);
    const value_id x = b.rounded(b.input("x", {2, channels, 3, 2}), q);
    b.output(make(b, x, q));
    return count_nodes(check_exact(b.g, image), chain);
  };
  using m = sum_builder;
  using q = quantisation;
  // A residual that is repeated, one that is a float, and the product itself repeated.
  CHECK(chains([](m& b, value_id x, const q& s) {
          const value_id mean = b.rounded(b.op("GlobalMaxPool", {x}), s);
          return b.rounded(b.op("Add", {b.rounded(b.conv(x), s), mean}), s);
        }) == 1);
  CHECK(chains([](m& b, value_id x, const q& s) {
          return b.rounded(b.op("Add", {b.rounded(b.conv(x), s), b.op("Tanh", {x})}), s);
        }) > 0);
  CHECK(chains([](m& b, value_id x, const q& s) {
          const value_id mean = b.rounded(b.op("GlobalMaxPool", {x}), s);
          return b.rounded(b.op("Add", {b.rounded(b.conv(mean), s), x}), s);
        }) == 1);
  // The result is a float, the node is not a sum, and another node than limits follows.
  CHECK(chains([](m& b, value_id x, const q& s) { return b.op("Add", {b.rounded(b.conv(x), s), x}); }) == 1);
  CHECK(chains([](m& b, value_id x, const q& s) {
          return b.rounded(b.op("Mul", {b.rounded(b.conv(x), s), x}), s);
        }) == 1);
  CHECK(chains([](m& b, value_id x, const q& s) {
          return b.rounded(b.op("Abs", {b.op("Add", {b.rounded(b.conv(x), s), x})}), s);
        }) == 1);
  CHECK(chains([](m& b, value_id x, const q& s) {
          const value_id y = b.rounded(b.conv(x), s);
          return b.rounded(b.op("Add", {y, y}), s);
        }) == 1);
  // Dequantised otherwise than it was quantised; a channel a group.
  CHECK(chains([](m& b, value_id x, const q& s) {
          const value_id y = b.real(b.bytes(b.conv(x), s), b.quantised(0.0625f, 128));
          return b.rounded(b.op("Add", {y, x}), s);
        }) == 1);
  CHECK(chains([](m& b, value_id x, const q& s) {
          return b.rounded(b.op("Add", {b.rounded(b.conv(x, channels), s), x}), s);
        }) == 1);
}
