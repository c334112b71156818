// The row proof of quantised calls and of other domains than ai.onnx.
#include "rewrite/rewrite.hpp"
#include "strategy/call_model.hpp"
#include "support/thrown.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::test;
using m = call_model;

TEST_CASE("Quantised products keep rows apart as products do", "[strategy][C1][quantised]") {
  // A, B, A's and B's scales, zero points, bias.
  const auto quantised = [](m& b, value_id x, value_id w, value_id w_scale, value_id x_zero, value_id w_zero,
                            value_id bias) {
    return b.many("QuantizedMatMul", {x, w, b.scalar(0.5f), w_scale, x_zero, w_zero, bias}, 1, {}, "troupe");
  };
  CHECK(axis_after([&](m& b) {
          return quantised(b, b.x({batch, 4}, dtype::uint8), b.bytes({4, 2}), b.weights({2}), no_value, b.bytes({2}),
                           b.weights({2}));
        }) == 0);
  CHECK(axis_after([&](m& b) {
          return quantised(b, b.bytes({3, 4}), b.x({4, batch}, dtype::uint8), b.scalar(2), b.bytes({}), no_value,
                           no_value);
        }) == 1);
  CHECK_THAT(refusal_of([&](m& b) {
               return quantised(b, b.x({batch, 4}, dtype::uint8), b.bytes({4, 2}), b.weights({2}), b.bytes({7}),
                                no_value, no_value);
             }),
             Catch::Contains("has scales for rows of A"));
  CHECK_THAT(refusal_of([&](m& b) {
               return quantised(b, b.bytes({3, 4}), b.x({4, batch}, dtype::uint8), b.weights({7}), no_value, no_value,
                                no_value);
             }),
             Catch::Contains("a part of operand 3"));
  CHECK_THAT(refusal_of([&](m& b) {
               return quantised(b, b.bytes({3, 4}), b.x({4, batch}, dtype::uint8), b.scalar(2), no_value, no_value,
                                b.weights({7}));
             }),
             Catch::Contains("a part of operand 6"));
}

TEST_CASE("Scales are for all rows, or for each row its own", "[strategy][C1]") {
  CHECK(axis_after([](m& b) { return b.op("QuantizeLinear", {b.x({batch, 4}), b.scalar(0.5f)}); }) == 0);
  CHECK(axis_after([](m& b) { return b.op("QuantizeLinear", {b.x({batch, 4}), b.weights({4})}, at(1)); }) == 0);
  CHECK(axis_after([](m& b) { return b.op("QuantizeLinear", {b.x({batch, 4}), b.x({batch})}, at(0)); }) == 0);
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("QuantizeLinear", {b.x({batch, 4}), b.weights({7})}, at(0));
             }),
             Catch::Contains("a part of operand 1"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.many("DynamicQuantizeLinear", {b.x({batch, 4})}, 3);
             }),
             Catch::Contains("takes its scale from all elements together"));
  CHECK_THAT(refusal_of([](m& b) {
               return b.op("DynamicQuantizeLinear", {b.x({batch, 4})});
             }),
             Catch::Contains("takes its scale from all elements together"));
}

TEST_CASE("Rows of quantised models are independent when they are fused", "[strategy][C1][quantised]") {
  graph_builder b;
  const value_id scale = b.scalar(0.0625f);
  const auto bytes_of = [&](const std::string& name, shape dims) {
    const auto count = static_cast<size_t>(volume(dims));
    return b.op("DequantizeLinear",
                {b.constant(name, tensor::of<int8_t>(std::move(dims), std::vector<int8_t>(count, 3))), scale});
  };
  const auto rounded = [&](value_id x) {
    return b.op("DequantizeLinear", {b.op("QuantizeLinear", {x, scale}), scale});
  };
  const value_id image =
      b.op("Relu", {b.op("Conv", {rounded(b.input("x", {batch, 3, 8, 8})), bytes_of("filters", {4, 3, 3, 3})})});
  const value_id again = rounded(b.op("Sigmoid", {b.op("Add", {rounded(image), image})}));
  const value_id flat = b.op("Flatten", {again});
  b.output(b.op("MatMul", {flat, bytes_of("w", {144, 5})}));
  // Both kinds of products that end in a sum.
  const value_id summed = rounded(b.op("Add", {rounded(b.op("Conv", {again, bytes_of("more", {4, 4, 1, 1})})), again}));
  const value_id lines = rounded(b.op("Reshape", {summed, b.integers({0, 24, 6})}));
  b.output(rounded(b.op("Add", {rounded(b.op("MatMul", {lines, bytes_of("v", {6, 6})})), lines})));
  const graph fused = rewrite(b.g, {});
  for (const char* op : {"troupe.QuantizedConv", "troupe.QuantizedMatMul", "troupe.QuantizedElementwise"}) {
    INFO(op);
    CHECK(count_nodes(fused, op) > 0);
  }
  CHECK(std::ranges::count_if(fused.nodes,
                              [](const node& n) { return n.domain == "troupe" && n.attrs.has("sum_low"); }) == 2);
  CHECK(prove_rows(fused).outputs == std::vector<std::optional<size_t>>{0, 0});
}

TEST_CASE("Scores of features, inverses and distances are a row's own", "[strategy][C1]") {
  const auto scored = [](symbolic_shape dims) {
    return [dims](m& b) {
      return b.many("LinearRegressor", {b.x(dims)}, 1, attrs_of({{"coefficients", std::vector<float>{1, 2, 3, 4}}}),
                    "ai.onnx.ml");
    };
  };
  CHECK(axis_after(scored({batch, 4})) == 0);
  CHECK_THAT(refusal_of(scored({4, batch})), Catch::Contains("scores what is along axis 1"));
  const auto inverse = [](symbolic_shape dims) {
    return [dims](m& b) { return b.many("Inverse", {b.x(dims)}, 1, {}, "com.microsoft"); };
  };
  CHECK(axis_after(inverse({batch, 3, 3})) == 0);
  CHECK_THAT(refusal_of(inverse({batch, 3})), Catch::Contains("inverts matrices over axis 0"));
  const auto distances = [](bool from_rows) {
    return [from_rows](m& b) {
      const value_id others = from_rows ? b.x({batch, 3}) : b.weights({5, 3});
      return b.many("CDist", {b.x({batch, 3}), others}, 1, attrs_of({{"metric", std::string("euclidean")}}),
                    "com.microsoft");
    };
  };
  CHECK(axis_after(distances(false)) == 0);
  CHECK_THAT(refusal_of(distances(true)), Catch::Contains("CDist"));
}

TEST_CASE("Words, packed matrices and memories keep rows apart, regions of images do not", "[strategy][C1]") {
  const auto words = [](symbolic_shape dims) {
    return [dims](m& b) {
      return b.many("WordConvEmbedding",
                    {b.x(dims, dtype::int32), b.weights({4, 1, 3, 2}), b.weights({4}), b.weights({10, 2})}, 1, {},
                    "com.microsoft");
    };
  };
  CHECK(axis_after(words({batch, 9})) == 0);
  CHECK_THAT(refusal_of(words({9, batch})), Catch::Contains("WordConvEmbedding"));
  CHECK(axis_after([](m& b) {
          const value_id dims = b.constant("dims", tensor::of<int64_t>({2}, std::vector<int64_t>{32, 2}));
          return b.many("MatMulFpQ4", {b.x({3, batch, 32}), b.bytes({40}), dims}, 1,
                        attrs_of({{"blk_quant_type", int64_t{0}}}), "com.microsoft");
        }) == 1);
  const auto attended = [](symbolic_shape x) {
    return [x](m& b) {
      return b.many("AttnLSTM",
                    {b.x(x), b.weights({1, 8, 7}), b.weights({1, 8, 2}), no_value, no_value, no_value, no_value,
                     no_value, b.weights({1, 2, 5}), b.weights({1, 3, 5}), b.weights({1, 5}), b.x({x[1], 6, 3})},
                    3, attrs_of({{"hidden_size", int64_t{2}}}), "com.microsoft");
    };
  };
  CHECK(proved(attended({5, batch, 4})).outputs == std::vector<std::optional<size_t>>{2, 1, 1});
  CHECK_THAT(refusal_of(attended({batch, 7, 4})), Catch::Contains("AttnLSTM"));
  const auto hashed = [](symbolic_shape ids, symbolic_shape past) {
    return [ids, past](m& b) {
      const value_id multipliers = b.constant("multipliers", tensor::of<int64_t>({3}, std::vector<int64_t>{1, 3, 5})),
                     sizes = b.constant("sizes", tensor::of<int64_t>({2}, std::vector<int64_t>{7, 11}));
      return b.many(
          "NGramHashMapping", {b.x(ids, dtype::int64), multipliers, sizes, b.x(past, dtype::int64)}, 2,
          attrs_of({{"max_ngram_size", int64_t{3}}, {"n_head_per_ngram", int64_t{1}}, {"pad_id", int64_t{0}}}),
          "com.microsoft");
    };
  };
  CHECK(proved(hashed({batch, 6}, {batch, 2})).outputs == std::vector<std::optional<size_t>>{0, 0});
  CHECK_THAT(refusal_of(hashed({2, batch}, {2, 2})), Catch::Contains("NGramHashMapping"));
  CHECK_THAT(refusal_of([](m& b) {
               const value_id size = b.constant("size", tensor::of<int32_t>({2}, std::vector<int32_t>{2, 2}));
               return b.many("CropAndResize",
                             {b.x({batch, 3, 8, 8}), b.weights({4, 4}),
                              b.constant("rows", tensor::of<int32_t>({4}, std::vector<int32_t>{0, 0, 0, 0})), size},
                             1, {}, "com.microsoft");
             }),
             Catch::Contains("takes regions of any part of axis 0"));
}

TEST_CASE("Projected attention keeps batch elements apart; all of them share matrix and bias", "[strategy][C1]") {
  const auto projected = [](m& b, value_id weights, value_id bias, value_id residual) {
    const symbolic_shape heads{batch, 1, 2, 4}, cache{batch, 2, 9, 4};
    return b.many("AttentionProjection",
                  {b.x(heads), b.x(heads), b.x(heads), no_value, b.x(cache), b.x(cache), weights, bias, residual}, 1,
                  attrs_of({{"q_layout", std::string("bshd")},
                            {"kv_layout", std::string("bshd")},
                            {"out_layout", std::string("bshd")}}),
                  "troupe");
  };
  CHECK(axis_after([&](m& b) { return projected(b, b.weights({8, 5}), b.weights({5}), b.x({batch, 1, 5})); }) == 0);
  for (const bool bias : {false, true})
    CHECK_THAT(refusal_of([&](m& b) {
                 return projected(b, bias ? b.weights({8, 5}) : b.x({batch, 5}), bias ? b.x({batch}) : b.weights({5}),
                                  b.x({batch, 1, 5}));
               }),
               Catch::Contains("troupe.AttentionProjection"));
}
