// troupe.Projections: its reference is its parts; calls that it refuses.
#include "ops/composed/projections.hpp"
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

TEST_CASE("a norm after a product is its first result, the product the second", "[ops][projections]") {
  const tensor x = random_tensor({2, 3, 12}, 1), w = random_tensor({12, 7}, 2), bias = random_tensor({7}, 3),
               residual = random_tensor({2, 3, 7}, 4), scale = random_tensor({7}, 5), shift = random_tensor({7}, 6);
  const attributes attrs = attrs_of(
      {{"products", int64_t{1}}, {"last_norm", std::string("LayerNormalization")}, {"epsilon.last_norm", 0.5f}});
  const tensor sum = run("troupe", "MatMul", {x, w, bias, residual});
  const tensor normed = run("", "LayerNormalization", {sum, scale, shift}, attrs_of({{"epsilon", 0.5f}}));
  for (const size_t outputs : {1, 2}) {
    const auto y = evaluate(*find_op("troupe", "Projections", 1), attrs,
                            std::vector<tensor>{x, {}, {}, w, {}, {}, bias, residual, scale, shift}, outputs);
    REQUIRE(y.size() == outputs);
    for (size_t o = 0; o < outputs; ++o) {
      REQUIRE(y[o].dims() == shape{2, 3, 7});
      for (int64_t i = 0; i < sum.size(); ++i)
        REQUIRE(y[o].data<float>()[i] == (o == 0 ? normed : sum).data<float>()[i]);
    }
  }
}

TEST_CASE("projections refuse calls of another form", "[ops][projections]") {
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
  const std::pair<std::string, attribute> last{"last_norm", std::string("LayerNormalization")};
  const tensor scale = random_tensor({6}, 3);
  CHECK_FALSE(refuses({x, {}, {}, w, {}, {}, {}, {}, scale}, {{"products", int64_t{1}}, last}));
  CHECK(refuses({x, {}, {}, w}, {{"products", int64_t{1}}, last}));
  CHECK(refuses({x, {}, {}, w, {}, {}, {}, {}, scale}, {{"products", int64_t{1}}, last, {"wide", int64_t{1}}}));
  CHECK(refuses({x, {}, {}, w, {}, {}, {}, {}, v}, {{"products", int64_t{2}}, last}));
  CHECK(refuses({x, {}, {}, w, {}, {}, {}, {}, scale},
                {{"products", int64_t{1}}, {"last_norm", std::string("Softmax")}}));
  CHECK(refuses({x, {}, {}, random_tensor({8}, 1)}, {{"products", int64_t{1}}}));
}

TEST_CASE("projections rotate the heads of some products", "[ops][projections]") {
  const tensor x = random_tensor({2, 3, 12}, 1);
  std::vector<tensor> w;
  for (const int64_t n : {16, 8, 5})
    w.push_back(random_tensor({12, n}, static_cast<uint32_t>(n)));
  const std::vector<tensor> angles{random_tensor({1, 3, 4}, 2), random_tensor({2, 3, 4}, 3)};
  const std::vector<tensor> tables{random_tensor({9, 1}, 2), random_tensor({9, 1}, 3),
                                   tensor::of<int64_t>({2, 3}, std::vector<int64_t>{4, 0, 8, 2, 2, 7})};
  for (const bool by_position : {false, true}) {
    attributes attrs = attrs_of({{"products", int64_t{3}},
                                 {"rotary", std::string(by_position ? "RotaryEmbedding" : "Rotary")},
                                 {"rotary_heads", std::vector<int64_t>{4, 2, 0}}});
    attributes own;
    if (by_position) {
      own = attrs_of({{"interleaved", int64_t{1}}, {"rotary_embedding_dim", int64_t{2}}});
      add_part(attrs, own, "rotary");
    }
    std::vector<tensor> inputs{x, {}, {}};
    for (const tensor& weights : w) {
      inputs.push_back(weights);
      inputs.resize(inputs.size() + projection::each - 1);
    }
    const std::vector<tensor>& how = by_position ? tables : angles;
    inputs.insert(inputs.end(), how.begin(), how.end());
    const auto y = evaluate(*find_op("troupe", "Projections", 1), attrs, inputs, 3);
    for (size_t p = 0; p < 3; ++p) {
      tensor wanted = run("", "MatMul", {x, w[p]});
      std::vector<tensor> operands{wanted};
      operands.insert(operands.end(), how.begin(), how.end());
      own.set("num_heads", int64_t{p == 0 ? 4 : 2});
      if (p < 2)
        wanted = by_position ? run("", "RotaryEmbedding", operands, own) : run("troupe", "Rotary", operands, own);
      REQUIRE(y[p].dims() == wanted.dims());
      CHECK(std::ranges::equal(y[p].values<float>(), wanted.values<float>()));
    }
  }
}

TEST_CASE("projections refuse rotations that do not fit", "[ops][projections]") {
  const tensor x = random_tensor({1, 3, 8}, 1), w = random_tensor({8, 6}, 2), angle = random_tensor({1, 3, 2}, 3);
  const auto refuses = [&](const tensor& rows, const char* rotary, std::vector<int64_t> heads, size_t angles = 2) {
    std::vector<tensor> inputs{rows, {}, {}, w, {}, {}, {}, {}};
    inputs.resize(inputs.size() + angles, angle);
    const attributes attrs =
        attrs_of({{"products", int64_t{1}}, {"rotary", std::string(rotary)}, {"rotary_heads", std::move(heads)}});
    return test::thrown_by([&] { run("troupe", "Projections", inputs, attrs); }).code() == errc::invalid_model;
  };
  CHECK_NOTHROW(run(
      "troupe", "Projections", {x, {}, {}, w, {}, {}, {}, {}, angle, angle},
      attrs_of(
          {{"products", int64_t{1}}, {"rotary", std::string("Rotary")}, {"rotary_heads", std::vector<int64_t>{3}}})));
  CHECK(refuses(x, "Softmax", {3}));
  CHECK(refuses(x, "Rotary", {3, 1}));
  CHECK(refuses(x, "Rotary", {4}));
  CHECK(refuses(x, "Rotary", {3}, 1));
  CHECK(refuses(random_tensor({3, 8}, 1), "Rotary", {3}));
}

TEST_CASE("wide projections of float16 are float32", "[ops][projections]") {
  const auto half = [](const tensor& t) { return run("", "Cast", {t}, attrs_of({{"to", int64_t{10}}})); };
  const tensor x = half(random_tensor({2, 8}, 1)), w = half(random_tensor({8, 6}, 2));
  const tensor narrow = run("troupe", "Projections", {x, {}, {}, w}, attrs_of({{"products", int64_t{1}}}));
  const tensor wide =
      run("troupe", "Projections", {x, {}, {}, w}, attrs_of({{"products", int64_t{1}}, {"wide", int64_t{1}}}));
  REQUIRE(narrow.type() == dtype::float16);
  REQUIRE(wide.type() == dtype::float32);
  CHECK(to_double(wide.view()) == to_double(narrow.view()));
}
