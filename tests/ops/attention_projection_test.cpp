// troupe.AttentionProjection: its reference is attention and the product of its heads; calls that it refuses.
#include "ops/composed/fused_attention.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::testing;
using test::random_tensor;

namespace {

attributes behind(attributes attrs = {}) {
  for (const char* name : {"q_layout", "kv_layout", "out_layout"})
    attrs.set(name, std::string("bshd"));
  return attrs;
}

const tensor q = random_tensor({2, 3, 4, 8}, 1), k = random_tensor({2, 3, 2, 8}, 2), v = random_tensor({2, 3, 2, 6}, 3),
             past_k = random_tensor({2, 2, 5, 8}, 4), past_v = random_tensor({2, 2, 5, 6}, 5),
             w = random_tensor({24, 7}, 6), bias = random_tensor({7}, 7), residual = random_tensor({2, 3, 7}, 8);

} // namespace

TEST_CASE("projected attention is attention and the product of its heads", "[ops][attention]") {
  const tensor heads = run("troupe", "Attention", {q, k, v, {}, past_k, past_v}, behind());
  REQUIRE(heads.dims() == shape{2, 3, 4, 6});
  const tensor wanted = run("troupe", "MatMul", {heads.reshaped({2, 3, 24}), w, bias, residual});
  const tensor got = run("troupe", "AttentionProjection", {q, k, v, {}, past_k, past_v, w, bias, residual}, behind());
  REQUIRE(got.dims() == shape{2, 3, 7});
  for (int64_t i = 0; i < got.size(); ++i)
    REQUIRE(got.data<float>()[i] == wanted.data<float>()[i]);
}

TEST_CASE("the matrix of projected attention may be transposed", "[ops][attention]") {
  tensor turned(dtype::float32, {7, 24});
  for (int64_t i = 0; i < 24; ++i)
    for (int64_t j = 0; j < 7; ++j)
      turned.mutable_data<float>()[j * 24 + i] = w.data<float>()[i * 7 + j];
  const tensor wanted = run("troupe", "AttentionProjection", {q, k, v, {}, {}, {}, w}, behind());
  const tensor got = run("troupe", "AttentionProjection", {q, k, v, {}, {}, {}, turned},
                         behind(attrs_of({{"transB.product", int64_t{1}}})));
  for (int64_t i = 0; i < got.size(); ++i)
    REQUIRE(got.data<float>()[i] == wanted.data<float>()[i]);
}

TEST_CASE("projected attention refuses operands that do not fit", "[ops][attention]") {
  const auto refused = [](std::vector<tensor> inputs, const attributes& attrs) {
    return test::thrown_by([&] { run("troupe", "AttentionProjection", std::move(inputs), attrs); });
  };
  const error depth = refused({q, k, v, {}, {}, {}, random_tensor({23, 7}, 1)}, behind());
  CHECK(depth.code() == errc::invalid_model);
  CHECK_THAT(depth.what(), Catch::Contains("elements of a position and rows of the matrix 24 and 23"));
  CHECK_THAT(refused({q, k, v, {}, {}, {}, random_tensor({24}, 1)}, behind()).what(), Catch::Contains("two dims"));
  CHECK_THAT(refused({q, k, v}, behind()).what(), Catch::Contains("two dims"));
  CHECK_THAT(refused({q, k, v, {}, {}, {}, w, random_tensor({1, 7}, 1)}, behind()).what(), Catch::Contains("a row"));
  CHECK_THAT(refused({q, k, v, {}, {}, {}, w, random_tensor({3}, 1)}, behind()).what(), Catch::Contains("of the bias"));
  CHECK_THAT(refused({q, k, v, {}, {}, {}, w, {}, random_tensor({3, 7}, 1)}, behind()).what(),
             Catch::Contains("residual"));
  CHECK_THAT(refused({q, k, v, {}, {}, {}, w}, behind(attrs_of({{"transA.product", int64_t{1}}}))).what(),
             Catch::Contains("not transposed"));
  attributes before = behind();
  before.set("out_layout", std::string("bhsd"));
  CHECK_THAT(refused({q, k, v, {}, {}, {}, w}, before).what(), Catch::Contains("heads after positions"));
}
