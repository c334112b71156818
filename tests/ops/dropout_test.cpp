#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

const tensor yes = tensor::scalar(true), no = tensor::scalar(false);

std::vector<tensor> drop(std::vector<tensor> inputs, std::optional<int64_t> seed = 0) {
  return run_op("Dropout", 22, seed ? attrs_of({{"seed", *seed}}) : attributes{}, std::move(inputs), 2);
}

} // namespace

TEST_CASE("Dropout hands its operand on unless it trains", "[ops][dropout]") {
  const tensor x = floats({3}, {1, 2, 3});
  const std::vector<double> same{1, 2, 3}, all{1, 1, 1};
  for (const auto& inputs : std::vector<std::vector<tensor>>{
           {x}, {x, tensor::scalar(0.7f)}, {x, tensor::scalar(0.7f), no}, {x, tensor::scalar(0.f), yes}}) {
    const auto y = drop(inputs, std::nullopt);
    CHECK(elements(y[0]) == same);
    CHECK(y[1].type() == dtype::boolean);
    CHECK(std::vector<uint8_t>(y[1].data<uint8_t>(), y[1].data<uint8_t>() + 3) == std::vector<uint8_t>{1, 1, 1});
  }
  CHECK(elements(run_op("Dropout", 7, {}, {x}, 2)[1]) == all);
}

TEST_CASE("Training drops the elements that the seed's Mersenne Twister chooses", "[ops][dropout]") {
  // The numbers that MT19937 gives from seed 0 begin with 0.5488, 0.7152, 0.6028, 0.5449, 0.4237, 0.6459, 0.4376,
  // 0.8918.
  const tensor x = floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto half = drop({x, tensor{}, yes});
  CHECK(elements(half[0]) == std::vector<double>{2, 4, 6, 8, 0, 12, 0, 16});
  CHECK(std::vector<uint8_t>(half[1].data<uint8_t>(), half[1].data<uint8_t>() + 8) ==
        std::vector<uint8_t>{1, 1, 1, 1, 0, 1, 0, 1});
  CHECK(elements(drop({x, tensor::scalar(0.75), yes})[0]) == std::vector<double>{0, 0, 0, 0, 0, 0, 0, 32});
  CHECK(elements(drop({x, tensor{}, yes}, 1)[0]) != elements(half[0]));
}

TEST_CASE("Training computes in float, rounded once", "[ops][dropout]") {
  tensor x(dtype::float16, {4});
  std::fill_n(x.mutable_data<float16>(), 4, float16(3.f));
  CHECK(elements(drop({x, tensor::scalar(0.25f), yes})[0]) == std::vector<double>{4, 4, 4, 4});
}

TEST_CASE("Training without a seed, and ratios that make no sense, are refused", "[ops][dropout]") {
  const tensor x = ramp({4});
  CHECK_THROWS_WITH(drop({x, tensor{}, yes}, std::nullopt), Catch::Contains("set attribute 'seed'"));
  CHECK_THROWS_WITH(drop({x, tensor{}, yes}, -1), Catch::Contains("'seed' is -1"));
  CHECK_THROWS_WITH(drop({x, tensor{}, yes}, int64_t{1} << 32), Catch::Contains("not in [0, 2^32)"));
  for (const float ratio : {1.f, -0.5f, NAN})
    CHECK_THROWS_WITH(drop({x, tensor::scalar(ratio), yes}), Catch::Contains("not in [0, 1)"));
  CHECK_THROWS_WITH(drop({x, floats({2}, {0, 0}), yes}), Catch::Contains("2 numbers instead of one"));
  CHECK_THROWS_WITH(drop({x, tensor{}, tensor::scalar(1.f)}), Catch::Contains("one boolean"));
}
