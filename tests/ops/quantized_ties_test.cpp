// Bytes of sums at ties, where the order of the scales' product and quotient decides. Expected bytes are those of ONNX
// Runtime's CPU.
#include "ops/run_op.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace troupe;
using testing::elements;
using testing::run;

namespace {

template <class T>
tensor single(T value) {
  return tensor::of<T>({}, std::vector<T>{value});
}

/// 5, 15 … 245: with scales of 0.1 throughout, quotients a hair above a half.
tensor fives(shape dims) {
  std::vector<uint8_t> x;
  for (int i = 5; i < 250; i += 10)
    x.push_back(static_cast<uint8_t>(i));
  return tensor::of<uint8_t>(std::move(dims), x);
}

std::vector<tensor> scaled_by_tenths(tensor x, shape of_one) {
  const tensor tenth = single(0.1f);
  return {std::move(x),
          tenth,
          single(uint8_t{0}),
          tensor::of<int8_t>(std::move(of_one), std::vector<int8_t>{1}),
          tenth,
          single(int8_t{0}),
          tenth,
          single(uint8_t{0})};
}

} // namespace

TEST_CASE("quantised sums are scaled by the operands' scales over the result's", "[ops][quantised]") {
  std::vector<double> want;
  for (int i = 1; i <= 25; ++i)
    want.push_back(i);
  CHECK(elements(run("", "QLinearMatMul", scaled_by_tenths(fives({25, 1}), {1, 1}))) == want);
  CHECK(elements(run("", "QLinearConv", scaled_by_tenths(fives({1, 1, 5, 5}), {1, 1, 1, 1}))) == want);
}

TEST_CASE("what a fused product of bytes quantises is divided by the result's scale", "[ops][quantised]") {
  // 14 · (2 n + 1) / 256 over 7 / 64 is n + 1/2: all of it is exact, but the product with 64 / 7 as a float is not.
  std::vector<uint8_t> odd;
  for (int i = 1; i < 18; i += 2)
    odd.push_back(static_cast<uint8_t>(i));
  const tensor step = single(1.f / 16), weight = tensor::of<int8_t>({1, 1}, std::vector<int8_t>{14});
  const tensor y = run("troupe", "QuantizedMatMul",
                       {tensor::of<uint8_t>({9, 1}, odd), weight, step, step, tensor(), tensor(), tensor(),
                        single(7.f / 64), single(uint8_t{0})});
  CHECK(elements(y) == std::vector<double>{0, 2, 2, 4, 4, 6, 6, 8, 8});
}
