#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

const tensor q = floats({1, 1, 2, 2}, {1, 0, 0, 1}), k = floats({1, 1, 2, 2}, {1, 0, 0, 2});
const tensor v = floats({1, 1, 2, 2}, {1, 10, 2, 20});

} // namespace

TEST_CASE("Attention weighs the values by softmax", "[ops]") {
  const std::vector<double> y = elements(run_op("Attention", 23, {}, {q, k, v})[0]);
  CHECK(y[0] == Approx(1.3302383));
  CHECK(y[3] == Approx(18.044297));
  // The causal first query sees the first key only; a masked NaN does no harm.
  const tensor holes = floats({1, 1, 2, 2}, {1, 10, NAN, NAN});
  CHECK(elements(run_op("Attention", 23, attrs_of({{"is_causal", int64_t{1}}}), {q, k, holes})[0])[1] == 10);
}

TEST_CASE("A fully masked query gives zeros, a past key comes first", "[ops]") {
  tensor mask(dtype::boolean, {2, 2});
  std::fill_n(mask.mutable_data<uint8_t>(), 4, uint8_t{0});
  mask.mutable_data<uint8_t>()[3] = 1;
  CHECK(elements(run_op("Attention", 23, {}, {q, k, v, mask})[0]) == std::vector<double>{0, 0, 2, 20});
  const auto y = run_op("Attention", 23, {}, {q, k, v, tensor{}, k, v}, 3);
  CHECK(y[1].dims() == shape{1, 1, 4, 2});
  CHECK(elements(y[2]) == std::vector<double>{1, 10, 2, 20, 1, 10, 2, 20});
}

TEST_CASE("Attention refuses operands that do not fit", "[ops]") {
  CHECK_THROWS_AS(run_op("Attention", 23, {}, {q, ramp({1, 1, 2, 3}), v}), error);
  CHECK_THROWS_AS(run_op("Attention", 23, {}, {ramp({1, 3, 2, 2}), ramp({1, 2, 2, 2}), ramp({1, 2, 2, 2})}), error);
  CHECK_THROWS_AS(run_op("Attention", 23, {}, {q, k, v, ramp({3, 2})}), error);
  CHECK_THROWS_AS(run_op("Attention", 23, {}, {ramp({1, 2, 4}), ramp({1, 2, 4}), ramp({1, 2, 4})}), error);
}

TEST_CASE("Rotary embedding turns pairs and copies the rest", "[ops]") {
  const tensor x = floats({1, 1, 1, 5}, {1, 2, 3, 4, 9}), cosine = floats({2, 2}, {1, 1, 0, 0}),
               sine = floats({2, 2}, {0, 0, 1, 1});
  const tensor position = tensor::of<int64_t>({1, 1}, std::vector<int64_t>{1});
  const auto run = [&](int64_t interleaved) {
    const auto attrs = attrs_of({{"interleaved", interleaved}, {"rotary_embedding_dim", int64_t{4}}});
    return elements(run_op("RotaryEmbedding", 23, attrs, {x, cosine, sine, position})[0]);
  };
  CHECK(run(0) == std::vector<double>{-3, -4, 1, 2, 9}); // a quarter turn
  CHECK(run(1) == std::vector<double>{-2, 1, -4, 3, 9});
  const tensor outside = tensor::of<int64_t>({1, 1}, std::vector<int64_t>{2});
  CHECK_THROWS_AS(
      run_op("RotaryEmbedding", 23, attrs_of({{"rotary_embedding_dim", int64_t{4}}}), {x, cosine, sine, outside}),
      error);
}

TEST_CASE("Einsum sums, takes diagonals and broadcasts the ellipsis", "[ops]") {
  const auto run = [](const char* equation, std::vector<tensor> operands) {
    return elements(run_op("Einsum", 12, attrs_of({{"equation", std::string(equation)}}), std::move(operands))[0]);
  };
  const tensor m = floats({2, 2}, {1, 2, 3, 4});
  CHECK(run("ij,jk->ik", {m, m}) == std::vector<double>{7, 10, 15, 22});
  CHECK(run("ij,jk", {m, m}) == std::vector<double>{7, 10, 15, 22});
  CHECK(run("ba", {m}) == std::vector<double>{1, 3, 2, 4});
  CHECK(run("ii->", {m}) == std::vector<double>{5});
  CHECK(run("...i,i->...", {m, floats({2}, {1, 10})}) == std::vector<double>{21, 43});
  CHECK_THROWS_AS(run("ij->ik", {m}), error);
  CHECK_THROWS_AS(run("ijk->i", {m}), error);
  CHECK_THROWS_AS(run("ij,jk->ik", {m}), error);
}

TEST_CASE("ArgMax and ArgMin choose the first or the last", "[ops]") {
  const tensor x = floats({2, 3}, {1, 3, 3, -1, -1, 0});
  CHECK(elements(run_op("ArgMax", 13, attrs_of({{"axis", int64_t{1}}}), {x})[0]) == std::vector<double>{1, 2});
  const auto last = attrs_of({{"axis", int64_t{-1}}, {"select_last_index", int64_t{1}}});
  CHECK(elements(run_op("ArgMax", 13, last, {x})[0]) == std::vector<double>{2, 2});
  CHECK(elements(run_op("ArgMin", 13, last, {x})[0]) == std::vector<double>{0, 1});
}
