// Cases of AttnLSTM and DecoderMaskedMultiHeadAttention that ONNX Runtime cannot give: where its own results are wrong,
// other element types, and calls that are refused.
#include "contrib/contrib_calls.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

// -- AttnLSTM

namespace {

/// Operands of a call of two steps, two batch elements, hidden size 2, a memory of 3 rows of 2 elements, scores of 4,
/// and an attention layer of 3.
std::vector<tensor> attention_operands() {
  return {noise({2, 2, 1}, 1),
          noise({1, 8, 4}, 2),
          noise({1, 8, 2}, 3),
          {},
          ints({2}, {2, 1}),
          {},
          {},
          {},
          noise({1, 2, 4}, 4),
          noise({1, 2, 4}, 5),
          noise({1, 4}, 6),
          noise({2, 3, 2}, 7),
          ints({2}, {3, 2}),
          noise({1, 4, 3}, 8)};
}

const attributes two_hidden = attrs_of({{"hidden_size", int64_t{2}}});

} // namespace

TEST_CASE("AttnLSTM computes in the type of its operands", "[ops][contrib]") {
  const auto want = elements(call("AttnLSTM", two_hidden, attention_operands(), 3)[0]);
  for (const dtype type : {dtype::float64, dtype::float16}) {
    auto inputs = attention_operands();
    for (tensor& t : inputs)
      if (t.defined() && t.type() == dtype::float32)
        t = converted(t, type);
    const auto got = call("AttnLSTM", two_hidden, inputs, 3);
    REQUIRE(got[2].type() == type);
    for (size_t i = 0; i < want.size(); ++i)
      CHECK(elements(got[0])[i] == Approx(want[i]).margin(type == dtype::float16 ? 2e-3 : 1e-6));
  }
}

TEST_CASE("AttnLSTM refuses operands that are missing or do not fit", "[ops][contrib]") {
  const auto refused = [](size_t input, const tensor& t, const attributes& attrs = two_hidden) {
    auto inputs = attention_operands();
    inputs[input] = t;
    return refusal("AttnLSTM", attrs, inputs, 3);
  };
  for (const size_t i : {8, 9, 10, 11}) {
    CHECK_THAT(refused(i, {}), Contains(fmt::format("input {} is missing", i)));
    CHECK_THAT(refused(i, noise({7}, 1)), Contains("rank 3") || Contains(fmt::format("input {} and", i)));
  }
  for (const size_t i : {1, 2, 3, 5, 6, 7, 8, 10, 13})
    CHECK_THAT(refused(i, noise({1, 9, 9}, 1)), Contains(fmt::format("input {} and what it must be", i)));
  CHECK_THAT(refused(13, tensor::scalar<float>(1)), Contains("input 13 and what it must be"));
  CHECK_THAT(refused(4, ints({2}, {3, 1})), Contains("a length of input 4 is 3, but must be 1 to 2"));
  CHECK_THAT(refused(4, ints({2}, {0, 1})), Contains("a length of input 4 is 0"));
  CHECK_THAT(refused(12, ints({2}, {4, 1})), Contains("a length of input 12 is 4, but must be 1 to 3"));
  CHECK_THAT(refused(12, longs({1, 1})), Contains("input 12 is int64, not int32"));
  CHECK_THAT(refused(2, converted(noise({1, 8, 2}, 3), dtype::float64)), Contains("input 2 is float64"));
  CHECK_THAT(refused(0, noise({2, 2}, 1)), Contains("must have rank 3"));
  CHECK_THAT(refused(3, {}, {}), Contains("hidden_size"));
  CHECK_THAT(refused(3, {}, attrs_of({{"hidden_size", int64_t{-1}}})), Contains("'hidden_size' is -1"));
  attributes sideways = two_hidden;
  sideways.set("direction", std::string("sideways"));
  CHECK_THAT(refused(3, {}, sideways), Contains("'direction' is 'sideways'"));
  auto empty = attention_operands();
  empty[11] = tensor(dtype::float32, {2, 0, 2});
  empty[12] = {};
  CHECK_THAT(refusal("AttnLSTM", two_hidden, empty, 3), Contains("the memory is empty"));
}

// -- DecoderMaskedMultiHeadAttention

namespace {

constexpr std::string_view decoder = "DecoderMaskedMultiHeadAttention";

attributes two_heads(std::vector<std::pair<const char*, attribute>> more = {}) {
  attributes attrs = attrs_of({{"num_heads", int64_t{2}}, {"past_present_share_buffer", int64_t{1}}});
  for (auto& [name, value] : more)
    attrs.set(name, value);
  return attrs;
}

/// Operands of `rows` rows of two heads of size 2, after `past` keys in buffers of 3 places.
std::vector<tensor> decoder_operands(int64_t rows, int32_t past) {
  return {noise({rows, 1, 4}, 1),
          noise({rows, 1, 4}, 2),
          noise({rows, 1, 4}, 3),
          {},
          {},
          noise({rows, 2, 3, 2}, 4),
          noise({rows, 2, 3, 2}, 5),
          ints({1}, {past}),
          {},
          {},
          {}};
}

} // namespace

// ONNX Runtime's CPU writes the new key elsewhere then.
TEST_CASE("DecoderMaskedMultiHeadAttention with nothing past gives the value", "[ops][contrib]") {
  const auto inputs = decoder_operands(2, 0);
  const auto made = call(decoder, two_heads(), inputs, 3);
  for (size_t i = 0; i < 8; ++i)
    CHECK(elements(made[0])[i] == Approx(elements(inputs[2])[i]));
  auto present = elements(inputs[6]);
  for (size_t head = 0; head < 4; ++head)
    for (size_t i = 0; i < 2; ++i)
      present[head * 6 + i] = elements(inputs[2])[head * 2 + i];
  CHECK(elements(made[2]) == present);
}

// ONNX Runtime's CPU writes the new keys of beams at place 0.
TEST_CASE("DecoderMaskedMultiHeadAttention writes the new keys of beams after their past", "[ops][contrib]") {
  auto inputs = decoder_operands(2, 2);
  inputs[8] = ints({1}, {2});
  inputs[9] = ints({1, 2, 3}, {1, 0, 5, 0, 0, 5}); // the last place is not read
  const auto beams = call(decoder, two_heads(), inputs, 3);
  inputs[8] = inputs[9] = {};
  const auto alone = call(decoder, two_heads(), inputs, 3);
  CHECK(elements(beams[1]) == elements(alone[1]));
  CHECK(elements(beams[2]) == elements(alone[2]));
  CHECK(elements(beams[0]) != elements(alone[0]));
}

TEST_CASE("DecoderMaskedMultiHeadAttention refuses operands that do not fit", "[ops][contrib]") {
  const auto refused = [](size_t input, const tensor& t, const attributes& attrs = two_heads(), size_t outputs = 3) {
    auto inputs = decoder_operands(2, 2);
    inputs[input] = t;
    return refusal(decoder, attrs, inputs, outputs);
  };
  CHECK_THAT(refused(7, ints({1}, {3})), Contains("write index 3 with 1 updates leaves a cache of 3"));
  CHECK_THAT(refused(7, ints({1}, {-1})), Contains("past_sequence_length is -1"));
  CHECK_THAT(refused(7, ints({2}, {1, 1})), Contains("elements of past_sequence_length: 2 and 1 differ"));
  CHECK_THAT(refused(7, {}), Contains("past_present_share_buffer needs past_sequence_length"));
  CHECK_THAT(refused(6, {}), Contains("so must the past ones"));
  CHECK_THAT(refused(2, {}), Contains("key and value must both be there"));
  CHECK_THAT(refused(0, noise({2, 3, 4}, 1)), Contains("3 queries of a row instead of one"));
  CHECK_THAT(refused(1, noise({2, 2, 4}, 1)), Contains("2 new keys of a row instead of one"));
  CHECK_THAT(refused(1, noise({2, 2, 3, 2}, 1)), Contains("cross attention, which has no past ones"));
  CHECK_THAT(refused(0, {}), Contains("an operand is missing"));
  CHECK_THAT(refused(8, ints({1}, {2})), Contains("beam_width and the beams of cache_indirection: 2 and 1"));
  CHECK_THAT(refused(9, ints({1, 2, 2}, {0, 0, 0, 0})), Contains("places of cache_indirection"));
  CHECK_THAT(refused(9, ints({1, 2, 3}, {0, 2, 0, 0, 0, 0})), Contains("index 2 is out of bounds for a dim of 2"));
  CHECK_THAT(refused(9, ints({2, 3}, {0, 0, 0, 0, 0, 0})), Contains("must have rank 3"));
  CHECK_THAT(refused(3, {}, two_heads({{"num_heads", int64_t{0}}})), Contains("0 heads"));
  CHECK_THAT(refused(9, ints({1, 2, 3}, {0, 0, 0, 0, 0, 0}), two_heads({{"past_present_share_buffer", int64_t{0}}})),
             Contains("cache_indirection without past_present_share_buffer"));
  auto packed = decoder_operands(2, 2);
  packed[1] = packed[2] = {};
  CHECK_THAT(refusal(decoder, two_heads(), packed), Contains("4 elements are not those of a query, a key and a value"));
}
