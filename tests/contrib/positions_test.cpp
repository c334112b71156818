// Cases of the operators in positions.mjs, and of EngramGate, that ONNX Runtime cannot give: other element types,
// attributes that it has in later versions, and calls that are refused.
#include "contrib/contrib_calls.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

// -- MRotaryEmbedding

namespace {

tensor positions(shape dims, const std::vector<int64_t>& values) {
  return tensor::of<int64_t>(std::move(dims), values);
}

attributes sections(int_list counts) {
  return attrs_of({{"mrope_section", std::move(counts)}});
}

} // namespace

TEST_CASE("MRotaryEmbedding with the same positions three times is RotaryEmbedding", "[ops][contrib]") {
  const tensor x = noise({2, 3, 4, 8}, 1), cosines = noise({9, 4}, 2), sines = noise({9, 4}, 3);
  const std::vector<int64_t> one{0, 3, 2, 8, 5, 5, 1, 7};
  std::vector<int64_t> all;
  for (int i = 0; i < 3; ++i)
    all.insert(all.end(), one.begin(), one.end());
  for (const dtype type : {dtype::float32, dtype::float64, dtype::float16}) {
    const auto as = [&](const tensor& t) { return type == dtype::float32 ? t : converted(t, type); };
    const auto want = call("RotaryEmbedding", {}, {as(x), positions({2, 4}, one), as(cosines), as(sines)})[0];
    for (const int64_t layout : {0, 1}) {
      attributes attrs = sections({1, 2, 1});
      attrs.set("mrope_layout", layout);
      const auto got = call("MRotaryEmbedding", attrs, {as(x), positions({3, 2, 4}, all), as(cosines), as(sines)})[0];
      REQUIRE(got.type() == type);
      CHECK(elements(got) == elements(want));
    }
  }
}

TEST_CASE("MRotaryEmbedding refuses positions outside of the caches", "[ops][contrib]") {
  const tensor x = noise({1, 1, 2, 4}, 1), cache = noise({5, 2}, 2);
  const auto refused = [&](const std::vector<int64_t>& ids) {
    return refusal("MRotaryEmbedding", sections({1, 1, 0}), {x, positions({3, 1, 2}, ids), cache, cache});
  };
  CHECK_THAT(refused({0, 5, 0, 0, 0, 0}), Contains("5"));
  CHECK_THAT(refused({0, 1, 0, -1, 0, 0}), Contains("9223372036854775807"));
}

TEST_CASE("MRotaryEmbedding refuses operands and sections that do not fit", "[ops][contrib]") {
  const tensor x = noise({1, 1, 2, 4}, 1), cache = noise({5, 2}, 2), ids = tensor(dtype::int64, {3, 1, 2});
  const auto refused = [](const attributes& attrs, const std::vector<tensor>& inputs) {
    return refusal("MRotaryEmbedding", attrs, inputs);
  };
  const auto with = [&](const char* name, int64_t value) {
    attributes attrs = sections({1, 1, 0});
    attrs.set(name, value);
    return attrs;
  };
  CHECK_THAT(refused({}, {x, ids, cache, cache}), Contains("'mrope_section' has 0 elements instead of 3"));
  for (const int_list& counts : {int_list{1, 1, 1}, int_list{1, 0, 0}, int_list{3, -1, 0}, int_list{0, 3, -1}})
    CHECK_THAT(refused(sections(counts), {x, ids, cache, cache}), Contains("does not add up to the caches' 2 columns"));
  CHECK_THAT(refused(with("mrope_layout", 2), {x, ids, cache, cache}), Contains("'mrope_layout' is 2"));
  CHECK_THAT(refused(with("rotary_embedding_dim", 4), {x, ids, cache, cache}), Contains("needs 'num_heads'"));
  attributes part = with("rotary_embedding_dim", 2);
  part.set("num_heads", int64_t{1});
  CHECK_THAT(refused(part, {x, ids, cache, cache}), Contains("'rotary_embedding_dim' is 2, but the caches have 2"));
  const attributes usual = sections({1, 1, 0});
  CHECK_THAT(refused(usual, {noise({2, 4}, 1), ids, cache, cache}), Contains("x has shape"));
  CHECK_THAT(refused(usual, {noise({1, 2, 4}, 1), ids, cache, cache}), Contains("'num_heads' is 0"));
  CHECK_THAT(refused(usual, {noise({1, 1, 2, 6}, 1), ids, cache, cache}), Contains("6 and 4 differ"));
  CHECK_THAT(refused(with("num_heads", 3), {noise({1, 2, 8}, 1), ids, cache, cache}), Contains("of a head"));
  CHECK_THAT(refused(usual, {x, tensor(dtype::int64, {1, 2}), cache, cache}), Contains("[3, batch, sequence]"));
  CHECK_THAT(refused(usual, {x, tensor(dtype::int64, {3, 1, 3}), cache, cache}), Contains("[3, batch, sequence]"));
  CHECK_THAT(refused(usual, {x, tensor(dtype::int32, {3, 1, 2}), cache, cache}), Contains("position_ids of int32"));
  CHECK_THAT(refused(usual, {x, ids, cache, noise({4, 2}, 1)}), Contains("caches of cosines and sines"));
  CHECK_THAT(refused(usual, {x, ids, cache, converted(cache, dtype::float64)}), Contains("input 3 is float64"));
  CHECK_THAT(refused(usual, {x, ids, tensor(dtype::float32, {5, 0}), tensor(dtype::float32, {5, 0})}),
             Contains("caches of 0 columns"));
  CHECK_THAT(refused(usual, {x, ids, {}, cache}), Contains("missing"));
}

// -- NGramHashMapping

namespace {

attributes hashes(int64_t tokens, int64_t heads, int64_t pad) {
  return attrs_of({{"max_ngram_size", tokens}, {"n_head_per_ngram", heads}, {"pad_id", pad}});
}

} // namespace

TEST_CASE("NGramHashMapping goes on where a call before it ended", "[ops][contrib]") {
  const attributes attrs = hashes(4, 2, 9);
  const tensor multipliers = longs({3, 5, 7, 11}), sizes = longs({101, 103, 107, 109, 113, 127});
  const auto whole = call("NGramHashMapping", attrs, {positions({1, 5}, {4, 8, 15, 16, 23}), multipliers, sizes}, 2);
  const auto first = call("NGramHashMapping", attrs, {positions({1, 2}, {4, 8}), multipliers, sizes}, 2);
  CHECK(elements(first[1]) == std::vector<double>{9, 4, 8});
  const auto rest = call("NGramHashMapping", attrs, {positions({1, 3}, {15, 16, 23}), multipliers, sizes, first[1]}, 2);
  auto joined = elements(first[0]);
  const auto more = elements(rest[0]);
  joined.insert(joined.end(), more.begin(), more.end());
  CHECK(joined == elements(whole[0]));
  CHECK(elements(rest[1]) == elements(whole[1]));
}

// ONNX Runtime has the attribute since the version after the one that made the cases.
TEST_CASE("NGramHashMapping hashes nothing from before the end of a text", "[ops][contrib]") {
  attributes attrs = hashes(3, 1, 0);
  attrs.set("eos_token_id", int64_t{2});
  const tensor multipliers = longs({1, 10, 100}), sizes = longs({1000, 1000});
  const auto y = call("NGramHashMapping", attrs, {positions({1, 5}, {7, 2, 5, 6, 4}), multipliers, sizes})[0];
  const auto pair = [](int64_t a, int64_t b) { return static_cast<double>(a ^ b * 10); };
  const auto three = [](int64_t a, int64_t b, int64_t c) { return static_cast<double>(a ^ b * 10 ^ c * 100); };
  // A hash at the end itself still begins with the end.
  CHECK(elements(y) == std::vector<double>{pair(7, 0), three(7, 0, 0), pair(2, 7), three(2, 7, 0), pair(5, 0),
                                           three(5, 0, 0), pair(6, 5), three(6, 5, 0), pair(4, 6), three(4, 6, 5)});
}

TEST_CASE("NGramHashMapping refuses sizes and tokens that do not fit", "[ops][contrib]") {
  const tensor ids = positions({1, 2}, {1, 2}), multipliers = longs({1, 2, 3}), sizes = longs({5, 7});
  const auto refused = [](const attributes& attrs, const std::vector<tensor>& inputs) {
    return refusal("NGramHashMapping", attrs, inputs, 2);
  };
  const attributes usual = hashes(3, 1, 0);
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  CHECK_THAT(refused(usual, {ids, multipliers, longs({5, 0})}), Contains("element 1 of vocab_sizes is 0"));
  CHECK_THAT(refused(usual, {ids, multipliers, longs({-5, 3})}), Contains("element 0 of vocab_sizes is -5"));
  CHECK_THAT(refused(hashes(1, 1, 0), {ids, multipliers, sizes}), Contains("at least 2 and 1 are needed"));
  CHECK_THAT(refused(hashes(3, 0, 0), {ids, multipliers, sizes}), Contains("at least 2 and 1 are needed"));
  CHECK_THAT(refused(hashes(3, most, 0), {ids, multipliers, sizes}), Contains("too many"));
  CHECK_THAT(refused(usual, {longs({1, 2}), multipliers, sizes}), Contains("[batch, sequence] is needed"));
  CHECK_THAT(refused(usual, {ids, longs({1, 2}), sizes}), Contains("multipliers and max_ngram_size"));
  CHECK_THAT(refused(usual, {ids, multipliers, longs({5})}), Contains("vocab_sizes and the number of hashes"));
  CHECK_THAT(refused(usual, {ids, multipliers, sizes, positions({1, 3}, {1, 2, 3})}), Contains("past_ids"));
  CHECK_THAT(refused(usual, {ids, multipliers, ints({2}, {5, 7})}), Contains("different element types"));
  CHECK_THAT(
      refused(attrs_of({{"max_ngram_size", int64_t{3}}, {"n_head_per_ngram", int64_t{1}}}), {ids, multipliers, sizes}),
      Contains("pad_id"));
  const std::vector<tensor> small{ints({1, 1}, {4}), ints({3}, {1, 2, 3}), ints({2}, {5, 7})};
  CHECK_THAT(refused(hashes(3, 1, most), small),
             Contains("'pad_id' is 9223372036854775807, which does not fit in int32"));
  attributes ended = usual;
  ended.set("eos_token_id", most);
  CHECK_THAT(refused(ended, small), Contains("'eos_token_id'"));
}

// -- EngramGate

TEST_CASE("EngramGate is half open where nothing of key and query agrees, and computes in float64", "[ops][contrib]") {
  const tensor key = noise({1, 2, 2, 4}, 1), query = noise({1, 2, 2, 4}, 2), value = noise({1, 2, 4}, 3),
               scale = noise({2, 4}, 4);
  const tensor nothing = floats({1, 2, 2, 4}, std::vector<float>(16));
  const auto half = elements(call("EngramGate", {}, {nothing, query, value, scale, scale})[0]);
  for (size_t i = 0; i < half.size(); ++i)
    CHECK(half[i] == Approx(elements(value)[i / 8 * 4 + i % 4] / 2));
  const auto wide = [](const tensor& t) { return converted(t, dtype::float64); };
  const auto got = call("EngramGate", {}, {wide(key), wide(query), wide(value), wide(scale), wide(scale)})[0];
  REQUIRE(got.type() == dtype::float64);
  const auto want = elements(call("EngramGate", {}, {key, query, value, scale, scale})[0]);
  for (size_t i = 0; i < want.size(); ++i)
    CHECK(elements(got)[i] == Approx(want[i]).margin(1e-6));
}

TEST_CASE("EngramGate refuses operands that do not fit", "[ops][contrib]") {
  const tensor key = noise({1, 2, 2, 4}, 1), value = noise({1, 2, 4}, 3), scale = noise({2, 4}, 4);
  const auto refused = [](const std::vector<tensor>& inputs) { return refusal("EngramGate", {}, inputs); };
  CHECK_THAT(refused({value, key, value, scale, scale}), Contains("must have rank 4"));
  CHECK_THAT(refused({key, noise({1, 2, 2, 3}, 1), value, scale, scale}), Contains("query and key"));
  CHECK_THAT(refused({key, key, noise({1, 2, 2}, 3), scale, scale}), Contains("value and [batch, sequence, size]"));
  CHECK_THAT(refused({key, key, value, noise({4}, 4), scale}), Contains("scale and [branches, size]"));
  CHECK_THAT(refused({key, key, value, scale, noise({2, 3}, 4)}), Contains("scale and [branches, size]"));
  CHECK_THAT(refused({key, key, value, scale, converted(scale, dtype::float16)}), Contains("input 4 is float16"));
  CHECK_THAT(refused({key, key, value, scale, {}}), Contains("missing"));
}
