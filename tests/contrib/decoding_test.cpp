// What cases of ONNX Runtime cannot say of AttnLSTM: other element types, and what is refused.
#include "contrib/contrib_calls.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

// -- AttnLSTM

namespace {

/// Operands of a call of two steps, two batch elements, hidden size 2, a memory of 3 rows of 2 elements, scores of 4, and an attention layer of 3.
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
