// FlexAttention against its definition: heads that share keys, types, and modifiers that know positions, read values
// around them, or are invalid.
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/kernel_case.hpp"
#include "support/thrown.hpp"
#include "tensor/convert.hpp"

#include <cmath>
#include <tuple>

using namespace troupe;
using namespace troupe::test;

namespace {

struct flex_sizes {
  int64_t batch = 2, heads = 4, kv_heads = 4, queries = 5, keys = 7, size = 8, value_size = 6;

  shape q() const { return {batch, heads, queries, size}; }
  shape k() const { return {batch, kv_heads, keys, size}; }
  shape v() const { return {batch, kv_heads, keys, value_size}; }
};

/// A model's change of a score or weight, given the positions of query and key.
using change = std::function<double(double, int64_t, int64_t)>;

double unchanged(double x, int64_t, int64_t) {
  return x;
}

/// Y by its definition.
std::vector<double> direct(const flex_sizes& s, const std::vector<tensor>& in, double scale, const change& score,
                           const change& weight) {
  const std::vector<double> q = to_double(in[0].view()), k = to_double(in[1].view()), v = to_double(in[2].view());
  std::vector<double> y;
  for (int64_t bh = 0; bh < s.batch * s.heads; ++bh)
    for (int64_t i = 0; i < s.queries; ++i) {
      const int64_t kv = bh / s.heads * s.kv_heads + bh % s.heads / (s.heads / s.kv_heads);
      std::vector<double> w;
      double sum = 0;
      for (int64_t j = 0; j < s.keys; ++j) {
        double dot = 0;
        for (int64_t d = 0; d < s.size; ++d)
          dot += q[static_cast<size_t>((bh * s.queries + i) * s.size + d)] *
                 k[static_cast<size_t>((kv * s.keys + j) * s.size + d)];
        w.push_back(std::exp(score(dot * scale, i, j)));
        sum += w.back();
      }
      for (int64_t d = 0; d < s.value_size; ++d) {
        double at = 0;
        for (int64_t j = 0; j < s.keys; ++j)
          at += weight(w[static_cast<size_t>(j)] / sum, i, j) *
                v[static_cast<size_t>((kv * s.keys + j) * s.value_size + d)];
        y.push_back(at);
      }
    }
  return y;
}

/// A graph whose output is FlexAttention of its first three inputs.
struct flex_model : graph_builder {
  explicit flex_model(const flex_sizes& s, dtype type = dtype::float32)
      : graph_builder(26), scores(this), weights(this) {
    g.opsets["ai.onnx.preview"] = 1;
    given = {input("q", to_symbolic(s.q()), type), input("k", to_symbolic(s.k()), type),
             input("v", to_symbolic(s.v()), type)};
  }

  graph finish(attributes attrs = {}) {
    std::map<std::string, body_builder*> bodies;
    for (const auto& [name, body] : {std::pair{"score_mod", &scores}, {"prob_mod", &weights}})
      if (!body->g.outputs.empty())
        bodies[name] = body;
    output(add_control(*this, "FlexAttention", "flex", given, bodies, 1, std::move(attrs))[0]);
    g.nodes.back().domain = "ai.onnx.preview";
    return g;
  }

  std::vector<value_id> given;
  body_builder scores, weights; // modifiers, if they have outputs
};

std::vector<tensor> operands(const flex_sizes& s, dtype type = dtype::float32) {
  std::vector<tensor> in;
  for (const shape& dims : {s.q(), s.k(), s.v()}) {
    in.emplace_back(type, dims);
    convert(random_floats(dims, static_cast<uint32_t>(in.size())).view(), in.back().mutable_ref());
  }
  return in;
}

void check(const graph& g, const std::vector<tensor>& in, const std::vector<double>& wanted, double margin = 1e-5) {
  for (const bool fuse : {false, true}) {
    const tensor y = run_graph(rewrite(g, {.fuse = fuse}), in)[0];
    CHECK(y.type() == in[0].type());
    const std::vector<double> got = to_double(y.view());
    REQUIRE(got.size() == wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == Approx(wanted[i]).margin(margin));
  }
}

} // namespace

TEST_CASE("FlexAttention without modifiers is attention", "[rewrite][ops][A1]") {
  for (const int64_t kv_heads : {4, 2, 1}) {
    const flex_sizes s{.kv_heads = kv_heads};
    const auto in = operands(s);
    check(flex_model(s).finish(), in, direct(s, in, 1 / std::sqrt(8.), unchanged, unchanged));
    check(flex_model(s).finish(attrs_of({{"scale", 0.7f}})), in, direct(s, in, 0.7, unchanged, unchanged));
  }
  const flex_sizes s;
  for (const auto& [type, margin] :
       {std::pair{dtype::float16, 2e-3}, {dtype::bfloat16, 2e-2}, {dtype::float64, 1e-12}}) {
    const auto in = operands(s, type);
    check(flex_model(s, type).finish(), in, direct(s, in, 1 / std::sqrt(8.), unchanged, unchanged), margin);
  }
}

TEST_CASE("FlexAttention's scores and weights are the results of its modifiers", "[rewrite][ops][A1]") {
  for (const int64_t kv_heads : {4, 2}) {
    const flex_sizes s{.kv_heads = kv_heads};
    const auto in = operands(s);
    flex_model m(s);
    const value_id x = m.scores.input("x", symbolic_shape{2, 4, 5, 7});
    m.scores.output(
        m.scores.op("Mul", {m.scores.op("Tanh", {m.scores.op("Div", {x, m.scores.scalar(2)})}), m.scores.scalar(2)}));
    const value_id w = m.weights.input("w", symbolic_shape{2, 4, 5, 7});
    m.weights.output(m.weights.op("Mul", {w, w}));
    check(m.finish(), in,
          direct(
              s, in, 1 / std::sqrt(8.), [](double score, int64_t, int64_t) { return 2 * std::tanh(score / 2); },
              [](double weight, int64_t, int64_t) { return weight * weight; }));
  }
}

TEST_CASE("FlexAttention's modifiers may ask for positions, and for values around them", "[rewrite][ops][A1]") {
  const flex_sizes s{.queries = 6, .keys = 6};
  auto in = operands(s);
  flex_model m(s);
  const value_id slope = m.input("slope", {});
  body_builder& b = m.scores;
  const value_id x = b.input("x", {dim::symbol("B"), dim::symbol("H"), dim::symbol("L"), dim::symbol("S")});
  const value_id dims = b.op("Shape", {x});
  const auto positions = [&](int64_t axis, std::vector<int64_t> to) {
    const value_id count = b.op("Gather", {dims, b.integer(axis)}, attrs_of({{"axis", int64_t{0}}}));
    return b.op("Reshape", {b.op("Range", {b.integer(0), count, b.integer(1)}), b.integers(to)});
  };
  const value_id query = positions(2, {-1, 1}), key = positions(3, {1, -1});
  const value_id distance = b.op("Cast", {b.op("Sub", {query, key})}, attrs_of({{"to", int64_t{1}}}));
  const value_id biased = b.op("Sub", {x, b.op("Mul", {b.capture(slope), distance})});
  b.output(
      b.op("Where", {b.op("GreaterOrEqual", {query, key}), biased, b.scalar(-std::numeric_limits<float>::infinity())}));
  in.push_back(tensor::scalar(0.3f));
  check(m.finish(), in,
        direct(
            s, in, 1 / std::sqrt(8.),
            [](double score, int64_t i, int64_t j) {
              return i >= j ? score - 0.3f * static_cast<double>(i - j) : -std::numeric_limits<double>::infinity();
            },
            unchanged));
}

TEST_CASE("FlexAttention's modifiers work in the precision that it states", "[rewrite][ops][A1]") {
  const flex_sizes s;
  for (const auto& [type, precision, wanted] : {std::tuple{dtype::float16, 0, dtype::float32},
                                                {dtype::float32, 11, dtype::float64},
                                                {dtype::float32, 10, dtype::float16}}) {
    const auto in = operands(s, type);
    flex_model m(s, type);
    const value_id x = m.scores.input("x", symbolic_shape{2, 4, 5, 7}, wanted); // else the graph is refused
    m.scores.output(m.scores.op("Abs", {x}));
    check(m.finish(precision == 0 ? attributes{} : attrs_of({{"softmax_precision", int64_t{precision}}})), in,
          direct(
              s, in, 1 / std::sqrt(8.), [](double score, int64_t, int64_t) { return std::abs(score); }, unchanged),
          3e-3);
  }
}

TEST_CASE("FlexAttention refuses operands that do not fit", "[rewrite][ops][A7]") {
  const auto words = [](flex_model& m, attributes attrs = {}) {
    const graph g = m.finish(std::move(attrs));
    return std::string(thrown_by([&] { rewrite(g, {}); }).what());
  };
  using Catch::Contains;
  flex_model odd({.heads = 4, .kv_heads = 3});
  CHECK_THAT(words(odd), Contains("flex") && Contains("4 query heads cannot share 3 key heads"));
  flex_model integers(flex_sizes{});
  CHECK_THAT(words(integers, attrs_of({{"softmax_precision", int64_t{7}}})), Contains("softmax_precision is int64"));
  flex_model two(flex_sizes{});
  const value_id x = two.scores.input("x", {2, 4, 5, 7});
  two.scores.input("y", {2, 4, 5, 7});
  two.scores.output(two.scores.op("Abs", {x}));
  CHECK_THAT(words(two), Contains("'score_mod' has 2 inputs and 1 outputs"));
  flex_model halved(flex_sizes{});
  const value_id w = halved.weights.input("w", {2, 4, 5, 7}, dtype::float16);
  halved.weights.output(halved.weights.op("Abs", {w}));
  CHECK_THAT(words(halved), Contains("'w'") && Contains("float16"));
}
