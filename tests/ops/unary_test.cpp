#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"

using namespace troupe;

TEST_CASE("Relu keeps positive numbers and NaN, drops negative ones", "[ops]") {
  const std::vector<float> x{-1.5f, 0.f, 2.f, NAN};
  const tensor in = tensor::of<float>({2, 2}, x);
  const tensor out = evaluate(*find_op("", "Relu", 14), {}, {&in, 1}).at(0);
  CHECK(out.values<float>()[0] == 0.f);
  CHECK(out.values<float>()[2] == 2.f);
  CHECK(std::isnan(out.values<float>()[3]));
}
