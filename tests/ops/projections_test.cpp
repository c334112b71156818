// troupe.Projections: its reference is its parts; what it refuses.
#include "ops/projections.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::testing;
using test::random_tensor;

TEST_CASE("projections are a norm and its products", "[ops][projections]") {
  const tensor x = random_tensor({2, 3, 12}, 1), scale = random_tensor({12}, 2), shift = random_tensor({12}, 3);
  const tensor w = random_tensor({12, 7}, 4), v = random_tensor({5, 12}, 5), bias = random_tensor({5}, 6);
  const attributes attrs = attrs_of({{"norm", std::string("LayerNormalization")},
                                     {"epsilon.norm", 0.5f},
                                     {"products", int64_t{2}},
                                     {"transB.1", int64_t{1}},
                                     {"activation.1", std::string("Relu")}});
  const auto y = evaluate(*find_op("troupe", "Projections", 1), attrs,
                          std::vector<tensor>{x, scale, shift, w, {}, {}, {}, {}, v, {}, {}, bias}, 2);
  const tensor normed = run("", "LayerNormalization", {x, scale, shift}, attrs_of({{"epsilon", 0.5f}}));
  const tensor first = run("", "MatMul", {normed, w});
  const tensor second = run("troupe", "MatMul", {normed, v, bias},
                            attrs_of({{"transB", int64_t{1}}, {"activation", std::string("Relu")}}));
  REQUIRE(y[0].dims() == shape{2, 3, 7});
  REQUIRE(y[1].dims() == shape{2, 3, 5});
  for (int64_t i = 0; i < first.size(); ++i)
    REQUIRE(y[0].data<float>()[i] == first.data<float>()[i]);
  for (int64_t i = 0; i < second.size(); ++i)
    REQUIRE(y[1].data<float>()[i] == second.data<float>()[i]);
}

TEST_CASE("gated projections are the product of two", "[ops][projections]") {
  const tensor x = random_tensor({3, 8}, 1), gate = random_tensor({8, 6}, 2), up = random_tensor({8, 6}, 3);
  const attributes attrs =
      attrs_of({{"products", int64_t{2}}, {"gated", int64_t{1}}, {"activation.0", std::string("Sigmoid")}});
  const tensor y = run("troupe", "Projections", {x, {}, {}, gate, {}, {}, {}, {}, up}, attrs);
  const tensor a = run("", "Sigmoid", {run("", "MatMul", {x, gate})}), b = run("", "MatMul", {x, up});
  for (int64_t i = 0; i < y.size(); ++i)
    REQUIRE(y.data<float>()[i] == Approx(a.data<float>()[i] * b.data<float>()[i]));
}

TEST_CASE("projections refuse what they are not", "[ops][projections]") {
  const tensor x = random_tensor({3, 8}, 1), w = random_tensor({8, 6}, 2), v = random_tensor({8, 5}, 2);
  const auto refuses = [&](const std::vector<tensor>& inputs,
                           std::initializer_list<std::pair<std::string, attribute>> values) {
    const error e = test::thrown_by([&] { run("troupe", "Projections", inputs, attrs_of(values)); });
    return e.code() == errc::invalid_model;
  };
  CHECK(refuses({x, {}, {}, w}, {{"products", int64_t{0}}}));
  CHECK(refuses({x, {}, {}, w}, {{"products", int64_t{5}}}));
  CHECK(refuses({x, {}, {}, w}, {{"products", int64_t{2}}}));
  CHECK(refuses({x, {}, {}, w}, {{"products", int64_t{1}}, {"gated", int64_t{1}}}));
  CHECK(refuses({x, {}, {}, w}, {{"products", int64_t{1}}, {"norm", std::string("Softmax")}}));
  CHECK(refuses({x, {}, {}, w}, {{"products", int64_t{1}}, {"norm", std::string("RMSNormalization")}}));
  CHECK(refuses({x, {}, {}, w, {}, {}, {}, {}, v}, {{"products", int64_t{2}}, {"gated", int64_t{1}}}));
  CHECK(refuses({x, {}, {}, random_tensor({8}, 1)}, {{"products", int64_t{1}}}));
}
