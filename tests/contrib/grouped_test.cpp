// Cases of GroupQueryAttention's caches that ONNX Runtime cannot give: a window's cache over many steps, and calls that
// are refused.
#include "contrib/contrib_calls.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// Operands of one query after a cache of `places`, [1, 1, places, 4]; 2 heads share its keys.
std::vector<tensor> step(int64_t length, tensor past_key, tensor past_value) {
  return {noise({1, 1, 8}, length),
          noise({1, 1, 4}, length + 100),
          noise({1, 1, 4}, length + 200),
          std::move(past_key),
          std::move(past_value),
          ints({1}, {static_cast<int32_t>(length - 1)}),
          tensor::scalar<int32_t>(static_cast<int32_t>(length))};
}

attributes heads(std::initializer_list<std::pair<const char*, attribute>> more) {
  attributes attrs = attrs_of({{"num_heads", int64_t{2}}, {"kv_num_heads", int64_t{1}}});
  for (const auto& [name, value] : more)
    attrs.set(name, value);
  return attrs;
}

} // namespace

TEST_CASE("a cache of a window's size gives the same as the whole cache, step after step", "[ops][contrib]") {
  const attributes whole = heads({{"local_window_size", int64_t{3}}}),
                   slid = heads({{"local_window_size", int64_t{3}}, {"sliding_window_cache", int64_t{1}}});
  tensor all_keys = noise({1, 1, 24, 4}, 1), all_values = noise({1, 1, 24, 4}, 2);
  tensor keys = noise({1, 1, 5, 4}, 3), values = noise({1, 1, 5, 4}, 4);
  for (int64_t length = 1; length <= 24; ++length) {
    const auto want = call("GroupQueryAttention", whole, step(length, all_keys, all_values), 3);
    const auto got = call("GroupQueryAttention", slid, step(length, keys, values), 3);
    INFO("length " << length);
    REQUIRE(got[1].dims() == shape{1, 1, 5, 4});
    for (int64_t i = 0; i < 8; ++i)
      CHECK(got[0].data<float>()[i] == Approx(want[0].data<float>()[i]));
    all_keys = want[1];
    all_values = want[2];
    keys = got[1];
    values = got[2];
  }
}

TEST_CASE("GroupQueryAttention refuses caches that do not fit its attributes", "[ops][contrib]") {
  const tensor real = noise({1, 1, 4, 4}, 1), bytes(dtype::int8, {1, 1, 4, 4}), pairs(dtype::uint8, {1, 1, 4, 2}),
               scale = noise({1}, 1);
  const auto refused = [&](std::initializer_list<std::pair<const char*, attribute>> more, const tensor& cache,
                           const tensor& s) {
    std::vector<tensor> inputs = step(3, cache, cache);
    inputs.resize(12);
    inputs.insert(inputs.end(), {s, s});
    return refusal("GroupQueryAttention", heads(more), inputs, 3);
  };
  const auto coded = [&](const char* kind, int64_t bits, const tensor& cache, const tensor& s) {
    return refused(
        {{"k_quant_type", std::string(kind)}, {"v_quant_type", std::string(kind)}, {"kv_cache_bit_width", bits}}, cache,
        s);
  };
  CHECK_THAT(coded("PER_ROW", 8, bytes, scale), Contains("'k_quant_type' is 'PER_ROW'"));
  CHECK_THAT(coded("PER_TENSOR", 3, bytes, scale), Contains("'kv_cache_bit_width' is 3"));
  CHECK_THAT(coded("PER_TENSOR", 8, bytes, {}), Contains("input 12, the scale of a quantised cache, is missing"));
  CHECK_THAT(coded("PER_TENSOR", 8, pairs, scale), Contains("input 3, a cache of 8 bits, is uint8 instead of int8"));
  CHECK_THAT(coded("PER_TENSOR", 4, bytes, scale), Contains("input 3, a cache of 4 bits, is int8 instead of uint8"));
  CHECK_THAT(coded("PER_CHANNEL", 8, bytes, scale), Contains("the elements of input 12"));
  CHECK_THAT(coded("PER_TENSOR", 8, {}, scale), Contains("input 3, the quantised cache, is missing"));
  const attribute three = int64_t{3}, yes = int64_t{1};
  CHECK_THAT(refused({{"sliding_window_cache", yes}}, real, {}), Contains("needs a positive 'local_window_size'"));
  CHECK_THAT(refused({{"sliding_window_cache", yes}, {"local_window_size", three}}, {}, {}),
             Contains("needs a positive 'local_window_size', and past key and value"));
  CHECK_THAT(refused({{"sliding_window_cache", yes}, {"local_window_size", int64_t{5}}}, real, {}),
             Contains("a cache of 4 places is less than a window of 5"));
  CHECK_THAT(refused({{"causal", int64_t{0}}, {"local_window_size", three}}, real, {}), Contains("must be -1"));
}
