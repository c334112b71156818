#include "ops/activation.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using test::random_tensor;
using testing::run;

namespace {

/// The element at (row, column) of matrix `i`, stored transposed or not.
float element(const tensor& t, int64_t i, int64_t row, int64_t column, bool transposed) {
  const int64_t rows = t.dims()[t.dims().size() - 2], columns = t.dims().back();
  return t.data<float>()[i * rows * columns + (transposed ? column * columns + row : row * columns + column)];
}

} // namespace

TEST_CASE("MatMul with its epilogue equals the sum of products", "[ops][A4]") {
  const int64_t batch = 3, M = 5, N = 7, K = 11;
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const int64_t stack : {int64_t{1}, batch}) {
        const tensor a = random_tensor(ta ? shape{batch, K, M} : shape{batch, M, K}, 1);
        const tensor b = random_tensor(tb ? shape{stack, N, K} : shape{stack, K, N}, 2);
        const tensor bias = random_tensor({N}, 3), residual = random_tensor({batch, M, N}, 4);
        attributes attrs;
        attrs.set("transA", int64_t{ta});
        attrs.set("transB", int64_t{tb});
        attrs.set("alpha", 0.5f);
        set_activation(attrs, {scalar_code::relu});
        const tensor y = run("troupe", "MatMul", {a, b, bias, residual}, attrs);
        REQUIRE(y.dims() == shape{batch, M, N});
        for (int64_t i = 0; i < y.size(); ++i) {
          const int64_t n = i % N, m = i / N % M, s = i / N / M;
          double sum = 0;
          for (int64_t k = 0; k < K; ++k)
            sum += element(a, s, m, k, ta) * element(b, stack == 1 ? 0 : s, k, n, tb);
          const double expected = 0.5 * sum + bias.data<float>()[n] + residual.data<float>()[i];
          REQUIRE(y.data<float>()[i] == Approx(std::max(expected, 0.0)).epsilon(1e-4).margin(1e-5));
        }
      }
  CHECK_THROWS_AS(run("troupe", "MatMul", {random_tensor({2, 3}, 1), random_tensor({4, 2}, 1)}), error);
  CHECK_THROWS_AS(run("troupe", "MatMul", {random_tensor({2, 3}, 1), random_tensor({3, 2}, 1), random_tensor({3}, 1)}),
                  error);
}

TEST_CASE("Conv with its epilogue equals Conv, Add, Relu", "[ops][A4]") {
  const tensor x = random_tensor({2, 6, 9, 7}, 1), w = random_tensor({4, 3, 3, 3}, 2), b = random_tensor({4}, 3),
               residual = random_tensor({2, 4, 5, 4}, 4);
  attributes attrs;
  attrs.set("group", int64_t{2});
  attrs.set("pads", std::vector<int64_t>{1, 1, 1, 1});
  attrs.set("strides", std::vector<int64_t>{2, 2});
  const tensor plain = run("", "Conv", {x, w, b}, attrs);
  set_activation(attrs, {scalar_code::relu});
  const tensor fused = run("troupe", "Conv", {x, w, b, residual}, attrs);
  REQUIRE(fused.dims() == plain.dims());
  for (int64_t i = 0; i < plain.size(); ++i)
    REQUIRE(fused.data<float>()[i] == std::max(plain.data<float>()[i] + residual.data<float>()[i], 0.f));
  CHECK_THROWS_AS(run("troupe", "Conv", {x, w, b, random_tensor({2, 4, 5, 5}, 4)}, attrs), error);
}

TEST_CASE("Attention equals softmax(scale Q K^T + mask) V in every layout, heads shared", "[ops][A4]") {
  const int64_t B = 2, H = 4, G = 2, S = 5, T = 7, D = 3, W = 6; // W: width of V
  const tensor q = random_tensor({B, H, S, D}, 1), k = random_tensor({B, G, T, D}, 2),
               v = random_tensor({B, G, T, W}, 3), mask = random_tensor({B, 1, S, T}, 4);
  const auto behind = [](const tensor& t) {
    const auto d = t.dims();
    tensor out(dtype::float32, {d[0], d[2], d[1], d[3]});
    for (int64_t i = 0; i < t.size(); ++i) {
      const int64_t w = i % d[3], s = i / d[3] % d[2], h = i / d[3] / d[2] % d[1], b = i / d[3] / d[2] / d[1];
      out.mutable_data<float>()[((b * d[2] + s) * d[1] + h) * d[3] + w] = t.data<float>()[i];
    }
    return out;
  };
  std::vector<double> expected;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t s = 0; s < S; ++s) {
        std::vector<double> p(static_cast<size_t>(T));
        double total = 0;
        for (int64_t t = 0; t < T; ++t) {
          double dot = 0;
          for (int64_t d = 0; d < D; ++d)
            dot += q.data<float>()[((b * H + h) * S + s) * D + d] * k.data<float>()[((b * G + h / 2) * T + t) * D + d];
          p[static_cast<size_t>(t)] = std::exp(0.5 * dot + mask.data<float>()[(b * S + s) * T + t]);
          total += p[static_cast<size_t>(t)];
        }
        for (int64_t w = 0; w < W; ++w) {
          double sum = 0;
          for (int64_t t = 0; t < T; ++t)
            sum += p[static_cast<size_t>(t)] / total * v.data<float>()[((b * G + h / 2) * T + t) * W + w];
          expected.push_back(sum);
        }
      }
  for (const bool qb : {false, true})
    for (const bool kb : {false, true})
      for (const bool ob : {false, true}) {
        attributes attrs;
        attrs.set("scale", 0.5f);
        attrs.set("q_layout", std::string(qb ? "bshd" : "bhsd"));
        attrs.set("kv_layout", std::string(kb ? "bshd" : "bhsd"));
        attrs.set("out_layout", std::string(ob ? "bshd" : "bhsd"));
        tensor y =
            run("troupe", "Attention", {qb ? behind(q) : q, kb ? behind(k) : k, kb ? behind(v) : v, mask}, attrs);
        if (ob)
          y = behind(y); // back
        for (int64_t i = 0; i < y.size(); ++i)
          REQUIRE(y.data<float>()[i] == Approx(expected[static_cast<size_t>(i)]).epsilon(1e-4).margin(1e-5));
      }
}

TEST_CASE("Attention gives NaN for a row that may see nothing, as Softmax does", "[ops]") {
  tensor mask(dtype::float32, {1, 1, 2, 3});
  std::fill_n(mask.mutable_data<float>(), 3, -INFINITY);
  std::fill_n(mask.mutable_data<float>() + 3, 3, 0.f);
  const tensor y =
      run("troupe", "Attention",
          {random_tensor({1, 1, 2, 4}, 1), random_tensor({1, 1, 3, 4}, 2), random_tensor({1, 1, 3, 4}, 3), mask});
  CHECK(std::isnan(y.data<float>()[0]));
  CHECK(std::isfinite(y.data<float>()[4]));
}
