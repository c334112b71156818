// Cases of the operators in words.mjs and gates.mjs that ONNX Runtime cannot give: where its own results are wrong or
// memory as it was, other element types, and calls that are refused.
#include "contrib/contrib_calls.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// Returns row `i` of the first axis, which stays.
tensor slab(const tensor& t, int64_t i) {
  shape dims = t.dims();
  dims[0] = 1;
  const auto* from = t.data<float>() + i * volume(dims);
  return tensor::of<float>(dims, std::vector<float>(from, from + volume(dims)));
}

} // namespace

// -- CropAndResize

TEST_CASE("CropAndResize computes in the type of its operands, and NaN is outside of an image", "[ops][contrib]") {
  const tensor x = noise({1, 2, 4, 5}, 1), images = ints({1}, {0}), size = ints({2}, {3, 2});
  const tensor roi = floats({1, 4}, {0.1f, 0.2f, 0.9f, 0.7f});
  const auto want = elements(call("CropAndResize", {}, {x, roi, images, size})[0]);
  for (const dtype type : {dtype::float64, dtype::float16}) {
    const tensor got = call("CropAndResize", {}, {converted(x, type), converted(roi, type), images, size})[0];
    REQUIRE(got.type() == type);
    for (size_t i = 0; i < want.size(); ++i)
      CHECK(elements(got)[i] == Approx(want[i]).margin(type == dtype::float16 ? 4e-3 : 1e-6));
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto lost = call("CropAndResize", attrs_of({{"extrapolation_value", 7.f}}),
                         {x, floats({1, 4}, {nan, 0, 1, 1}), images, ints({2}, {2, 2})});
  CHECK(elements(lost[0])[0] == 7);
}

TEST_CASE("CropAndResize refuses invalid regions and sizes", "[ops][contrib]") {
  const tensor x = noise({2, 1, 3, 3}, 1), roi = floats({1, 4}, {0, 0, 1, 1}), size = ints({2}, {2, 2});
  const auto refused = [&](const tensor& image, const tensor& region, const tensor& of, const tensor& crop,
                           const attributes& attrs = {}) {
    return refusal("CropAndResize", attrs, {image, region, of, crop});
  };
  const tensor first = ints({1}, {0});
  CHECK_THAT(refused(x, roi, ints({1}, {2}), size), Contains("region 0 is of image 2, of which there are 2"));
  CHECK_THAT(refused(x, roi, ints({1}, {-1}), size), Contains("region 0 is of image -1"));
  CHECK_THAT(refused(x, roi, ints({2}, {0, 1}), size), Contains("regions and their images: 1 and 2 differ"));
  CHECK_THAT(refused(x, floats({1, 5}, {0, 0, 0, 1, 1}), first, size), Contains("coordinates of a region: 5 and 4"));
  CHECK_THAT(refused(noise({3, 3}, 1), roi, first, size), Contains("[N, C, H, W], [R, 4] and [R] are needed"));
  CHECK_THAT(refused(x, roi, first, ints({3}, {1, 2, 3})), Contains("the crop size has 3 numbers"));
  CHECK_THAT(refused(x, roi, first, ints({2}, {-1, 2})), Contains("a crop of -1 x 2 elements"));
  CHECK_THAT(refused(x, converted(roi, dtype::float64), first, size), Contains("regions of float64"));
  CHECK_THAT(refused(x, roi, first, size, attrs_of({{"mode", std::string("cubic")}})), Contains("'mode' is 'cubic'"));
  CHECK_THAT(refused(x, roi, {}, size), Contains("input 2 is missing"));
}

// -- MaxpoolWithMask

TEST_CASE("MaxpoolWithMask refuses masks that do not fit", "[ops][contrib]") {
  const attributes attrs = attrs_of({{"kernel_shape", int_list{2}}});
  const tensor x = noise({1, 2, 4}, 1);
  const auto refused = [&](const tensor& mask, const attributes& a) {
    return refusal("MaxpoolWithMask", a, {x, mask});
  };
  CHECK_THAT(refused(tensor(dtype::int32, {1, 1, 3}), attrs), Contains("a spatial size of mask and input: 3 and 4"));
  CHECK_THAT(refused(tensor(dtype::int32, {1, 4}), attrs), Contains("a mask of int32 and shape"));
  CHECK_THAT(refused(tensor(dtype::int64, {1, 1, 4}), attrs), Contains("a mask of int64"));
  CHECK_THAT(refused(tensor(dtype::int32, {0, 1, 4}), attrs), Contains("is none for an input of shape"));
  CHECK_THAT(refused(tensor(dtype::int32, {1, 1, 4}), attrs_of({{"kernel_shape", int_list{2, 2}}})),
             Contains("kernel_shape has 2 elements"));
}

// -- DynamicTimeWarping

TEST_CASE("DynamicTimeWarping always ends, and refuses operands that are not matrices", "[ops][contrib]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), much = std::numeric_limits<float>::infinity();
  const auto way = call("DynamicTimeWarping", {}, {floats({2, 3}, {nan, much, 1, -much, nan, 0})})[0];
  CHECK(way.type() == dtype::int32);
  CHECK(elements(way)[static_cast<size_t>(way.dims()[1]) - 1] == 1);
  CHECK(elements(way).back() == 2);
  CHECK(call("DynamicTimeWarping", {}, {tensor(dtype::float32, {0, 3})})[0].dims() == shape{2, 0});
  CHECK_THAT(refusal("DynamicTimeWarping", {}, {noise({2, 3, 4}, 1)}), Contains("only one matrix at a time"));
  CHECK_THAT(refusal("DynamicTimeWarping", {}, {noise({3}, 1)}), Contains("[M, N] or [1, M, N] is needed"));
}

// -- BifurcationDetector

TEST_CASE("BifurcationDetector refuses places and predictions that do not fit the source", "[ops][contrib]") {
  const auto refused = [](int64_t place, const std::vector<int64_t>& predicted, const attributes& attrs = {}) {
    return refusal("BifurcationDetector", attrs, {longs({1, 2, 3}), longs({7}), longs({place}), longs(predicted)}, 2);
  };
  CHECK_THAT(refused(-1, {1}), Contains("place -1 is outside a source of 3 tokens"));
  CHECK_THAT(refused(4, {1}), Contains("place 4 is outside"));
  CHECK_THAT(refused(1, {2, 3}), Contains("2 predicted tokens from place 1 on; a source of 3 needs 3"));
  CHECK_THAT(refused(0, {1, 2, 3, 4}, attrs_of({{"min_ngram_size", int64_t{0}}})), Contains("'min_ngram_size'"));
  CHECK_THAT(refused(0, {1, 2, 3, 4}, attrs_of({{"min_ngram_size", int64_t{4}}})), Contains("are 4 and 3"));
  CHECK_THAT(refusal("BifurcationDetector", {}, {longs({1}), longs({7}), longs({0, 0})}, 2),
             Contains("elements of the place in the source: 2 and 1"));
  CHECK_THAT(refusal("BifurcationDetector", {}, {longs({1}), tensor(dtype::int64, {1, 1}), longs({0})}, 2),
             Contains("input 1 is int64"));
}

// -- NGramRepeatBlock

TEST_CASE("NGramRepeatBlock refuses n-grams without tokens, and ids without a score", "[ops][contrib]") {
  const auto refused = [](int64_t size, int64_t id) {
    const tensor ids = tensor::of<int64_t>({1, 2}, std::vector<int64_t>{id, id});
    return refusal("NGramRepeatBlock", attrs_of({{"ngram_size", size}}), {ids, noise({1, 3}, 1)});
  };
  CHECK_THAT(refused(0, 1), Contains("attribute 'ngram_size' must be at least 1, not 0"));
  CHECK_THAT(refused(1, 3), Contains("the id 3 is outside the 3 ids"));
}

// -- WordConvEmbedding

TEST_CASE("WordConvEmbedding gives zeros for a word without characters", "[ops][contrib]") {
  const tensor filters = noise({2, 1, 2, 3}, 1), bias = noise({2}, 2), table = noise({5, 3}, 3);
  const tensor y = call("WordConvEmbedding", {}, {ints({2, 3}, {0, 4, 4, 1, 2, 0}), filters, bias, table})[0];
  CHECK(elements(slab(y, 0)) == std::vector<double>{0, 0});
  CHECK(elements(slab(y, 1))[0] != 0);
}

TEST_CASE("WordConvEmbedding refuses characters without an embedding, and sizes that differ", "[ops][contrib]") {
  const tensor words = ints({1, 3}, {1, 2, 3}), filters = noise({2, 1, 2, 3}, 1), bias = noise({2}, 2),
               table = noise({4, 3}, 3);
  const auto refused = [&](const std::vector<tensor>& inputs, const attributes& attrs = {}) {
    return refusal("WordConvEmbedding", attrs, inputs);
  };
  CHECK_THAT(refused({ints({1, 3}, {1, 4, 0}), filters, bias, table}), Contains("character 4 is outside the 4"));
  CHECK_THAT(refused({ints({1, 3}, {1, -2, 1}), filters, bias, table}), Contains("character -2 is outside"));
  CHECK_THAT(refused({words, noise({2, 1, 4, 3}, 1), bias, table}), Contains("windows of 4 characters do not fit"));
  CHECK_THAT(refused({words, filters, noise({3}, 2), table}), Contains("filters and their biases: 2 and 3"));
  CHECK_THAT(refused({words, filters, bias, noise({4, 2}, 3)}), Contains("embeddings: 3 and 2 differ"));
  CHECK_THAT(refused({words, noise({2, 2, 2, 3}, 1), bias, table}), Contains("channels of the filters: 2 and 1"));
  CHECK_THAT(refused({words, filters, bias, converted(table, dtype::float64)}), Contains("input 3 is float64"));
  CHECK_THAT(refused({ints({3}, {1, 2, 3}), filters, bias, table}), Contains("[words, places]"));
  for (const char* size : {"embedding_size", "conv_window_size", "char_embedding_size"})
    CHECK_THAT(refused({words, filters, bias, table}, attrs_of({{size, int64_t{7}}})), Contains(size));
}

// -- MatMulFpQ4

TEST_CASE("MatMulFpQ4 refuses bytes that are not those of the matrix", "[ops][contrib]") {
  const auto refused = [](const tensor& a, int64_t bytes, const tensor& dims, int64_t type = 1) {
    return refusal("MatMulFpQ4", attrs_of({{"blk_quant_type", type}}), {a, tensor(dtype::uint8, {bytes}), dims});
  };
  const tensor a = noise({2, 33}, 1);
  CHECK_THAT(refused(a, 83, longs({33, 2})), Contains("the bytes of B and those of its dims: 83 and 84 differ"));
  CHECK_THAT(refused(a, 84, longs({33, 2}), 0), Contains("84 and 80 differ"));
  CHECK_THAT(refused(a, 42, longs({32, 2})), Contains("columns of A and rows of B: 33 and 32"));
  CHECK_THAT(refused(a, 84, longs({33, 2}), 2), Contains("'blk_quant_type' is 2"));
  CHECK_THAT(refused(a, 84, longs({33})), Contains("two sizes are needed"));
  CHECK_THAT(refused(a, 84, longs({33, -2})), Contains("two sizes are needed"));
  CHECK_THAT(refused(tensor::scalar<float>(1), 84, longs({33, 2})), Contains("A has no dims"));
  CHECK(refused(a, 84, longs({std::numeric_limits<int64_t>::max(), 1LL << 40})) != "nothing was thrown");
  CHECK_THAT(refusal("MatMulFpQ4", {}, {a, tensor(dtype::uint8, {2, 42}), longs({33, 2})}), Contains("a vector"));
}

// -- GatedAdd, GatedRMSNorm, LinearAttentionGate

TEST_CASE("GatedRMSNorm gates by a sigmoid where it is asked to", "[ops][contrib]") {
  const tensor x = noise({2, 4}, 1), scale = noise({2}, 2), gate = noise({2, 4}, 3);
  const auto by_silu = elements(call("GatedRMSNorm", {}, {x, scale, gate})[0]),
             by_sigmoid = elements(
                 call("GatedRMSNorm", attrs_of({{"activation", std::string("sigmoid")}}), {x, scale, gate})[0]);
  for (size_t i = 0; i < by_silu.size(); ++i)
    CHECK(by_sigmoid[i] * elements(gate)[i] == Approx(by_silu[i]));
}

TEST_CASE("Gates refuse operands that do not fit", "[ops][contrib]") {
  const tensor x = noise({2, 4}, 1), row = noise({2, 1}, 2);
  CHECK_THAT(refusal("GatedAdd", {}, {x, row, row}), Contains("y and x: shapes"));
  CHECK_THAT(refusal("GatedAdd", {}, {x, x, x}), Contains("the gate and what it must be: shapes"));
  CHECK_THAT(refusal("GatedAdd", {}, {tensor::scalar<float>(1), tensor::scalar<float>(1), row}),
             Contains("x has rank 0"));
  CHECK_THAT(refusal("GatedRMSNorm", {}, {x, noise({3}, 1), x}), Contains("rows of 4 do not divide into parts of 3"));
  CHECK_THAT(refusal("GatedRMSNorm", {}, {x, tensor(dtype::float32, {0}), x}),
             Contains("do not divide into parts of 0"));
  CHECK_THAT(refusal("GatedRMSNorm", {}, {x, noise({4}, 1), row}), Contains("the gate and x: shapes"));
  CHECK_THAT(refusal("GatedRMSNorm", attrs_of({{"activation", std::string("relu")}}), {x, noise({4}, 1), x}),
             Contains("'activation' is 'relu'"));
  const tensor heads = noise({4}, 3);
  CHECK_THAT(refusal("LinearAttentionGate", {}, {x, noise({3}, 1), heads}),
             Contains("elements of dt_bias and heads: 3 and 4"));
  CHECK_THAT(refusal("LinearAttentionGate", {}, {x, heads, noise({5}, 1)}), Contains("decay_scale and heads: 5 and 4"));
  CHECK_THAT(refusal("LinearAttentionGate", {}, {x, heads, heads, row}, 2), Contains("b and a: shapes"));
  CHECK_THAT(refusal("LinearAttentionGate", {}, {x, heads, heads}, 2), Contains("output 1 needs input 3"));
}
