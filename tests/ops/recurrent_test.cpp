#include "ops/run_op.hpp"
#include "support/catch.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Operands of a bidirectional cell with one input and one hidden unit, all weights `w`.
std::vector<tensor> unit_operands(int64_t gates, float w, std::vector<float> x) {
  const auto steps = static_cast<int64_t>(x.size());
  const tensor weights = floats({2, gates, 1}, std::vector<float>(static_cast<size_t>(2 * gates), w));
  return {floats({steps, 1, 1}, std::move(x)), weights, weights};
}

} // namespace

TEST_CASE("RNN runs both directions and states the last state of each", "[ops]") {
  const auto attrs = attrs_of({{"direction", std::string("bidirectional")},
                               {"activations", std::vector<std::string>{"Affine", "Relu"}},
                               {"activation_alpha", std::vector<float>{2.f}}});
  const auto y = run_op("RNN", 14, attrs, unit_operands(1, 1, {1, 2, 3}), 2);
  // forward: h = 2(x + h): 2, 8, 22; backward: h = x + h from the end: 3, 5, 6
  CHECK(elements(y[0]) == std::vector<double>{2, 6, 8, 5, 22, 3});
  CHECK(elements(y[1]) == std::vector<double>{22, 6});
}

TEST_CASE("Short sequences keep their state, give zeros, and run backwards from their own end", "[ops]") {
  const auto attrs =
      attrs_of({{"direction", std::string("reverse")}, {"activations", std::vector<std::string>{"Relu"}}});
  const tensor one = floats({1, 1, 1}, {1});
  const tensor lengths = tensor::of<int32_t>({2}, std::vector<int32_t>{1, 2});
  const auto y = run_op("RNN", 14, attrs, {floats({2, 2, 1}, {1, 10, 2, 20}), one, one, tensor{}, lengths}, 2);
  CHECK(elements(y[0]) == std::vector<double>{1, 30, 0, 20});
  CHECK(elements(y[1]) == std::vector<double>{1, 30});
  const tensor wrong = tensor::of<int32_t>({2}, std::vector<int32_t>{1, 3});
  CHECK_THROWS_AS(run_op("RNN", 14, attrs, {floats({2, 2, 1}, {1, 10, 2, 20}), one, one, tensor{}, wrong}, 2), error);
}

TEST_CASE("LSTM follows its formula with peepholes and initial states", "[ops]") {
  // One step, all gates linear (Affine is the identity): x = 1, h = 2, c = 3; W = R rows (i o f c) = 1 2 3 4.
  const tensor w = floats({1, 4, 1}, {1, 2, 3, 4});
  const auto attrs = attrs_of({{"activations", std::vector<std::string>{"Affine", "Affine", "Affine"}}});
  const auto y = run_op("LSTM", 14, attrs,
                        {floats({1, 1, 1}, {1}), w, w, tensor{}, tensor{}, floats({1, 1, 1}, {2}),
                         floats({1, 1, 1}, {3}), floats({1, 3}, {1, 10, 2})},
                        3);
  // i = 3 + 1·3 = 6, f = 9 + 2·3 = 15, c' = 12: C = 15·3 + 6·12 = 117; o = 6 + 10·117 = 1176
  CHECK(elements(y[2]) == std::vector<double>{117});
  CHECK(elements(y[1]) == std::vector<double>{1176.0 * 117});
}

TEST_CASE("GRU resets before or after the product", "[ops]") {
  const tensor w = floats({1, 3, 1}, {0, 0, 1}), bias = floats({1, 6}, {0, 3, 0, 0, 0, 10});
  const auto run = [&](int64_t linear_before_reset) {
    const auto attrs = attrs_of(
        {{"activations", std::vector<std::string>{"Affine", "Affine"}}, {"linear_before_reset", linear_before_reset}});
    return elements(
        run_op("GRU", 14, attrs, {floats({1, 1, 1}, {1}), w, w, bias, tensor{}, floats({1, 1, 1}, {2})}, 2)[1]);
  };
  CHECK(run(0) == std::vector<double>{1 + 3 * 2 + 10});   // r = 3: x + (r·h)·R + Rb
  CHECK(run(1) == std::vector<double>{1 + 3 * (2 + 10)}); // x + r·(h·R + Rb)
}

TEST_CASE("Recurrent operators refuse operands that do not fit", "[ops]") {
  const tensor x = ramp({2, 1, 3}), w = ramp({1, 4, 3}), r = ramp({1, 4, 1});
  CHECK_NOTHROW(run_op("LSTM", 14, {}, {x, w, r}, 3));
  CHECK_THROWS_AS(run_op("LSTM", 14, {}, {x, ramp({1, 4, 2}), r}, 3), error);
  CHECK_THROWS_AS(run_op("LSTM", 14, {}, {x, w, r, ramp({1, 7})}, 3), error);
  CHECK_THROWS_AS(run_op("LSTM", 14, attrs_of({{"direction", std::string("both")}}), {x, w, r}, 3), error);
  CHECK_THROWS_AS(run_op("LSTM", 14, attrs_of({{"activations", std::vector<std::string>{"Tanh"}}}), {x, w, r}, 3),
                  error);
}

TEST_CASE("LSTM's clip limits the sums of the gates, not the cell", "[ops]") {
  // All gates are sigmoid(0) and tanh(0) but the candidate, tanh(limited 5): C = c / 2 + tanh(1.5) / 2, far over the
  // limit.
  const tensor w = floats({1, 4, 1}, {0, 0, 0, 5}), r = floats({1, 4, 1}, {0, 0, 0, 0});
  const auto y = run_op("LSTM", 14, attrs_of({{"clip", 1.5f}}),
                        {floats({1, 1, 1}, {1}), w, r, tensor{}, tensor{}, tensor{}, floats({1, 1, 1}, {6})}, 3);
  const double cell = 3 + std::tanh(1.5) / 2;
  CHECK(elements(y[2])[0] == Approx(cell));
  CHECK(elements(y[1])[0] == Approx(std::tanh(cell) / 2)); // as ONNX Runtime computes it
}
