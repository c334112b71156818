// Weight recipes: files decide how many steps stand on each other and how they share operands.
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"

using namespace troupe;

namespace {

weight_ptr leaf(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  return weight::from_tensor(tensor::of<float>({count}, std::span<const float>(values)));
}

weight_ptr step(std::string_view op, std::vector<weight_ptr> operands) {
  const op_def* def = find_op("", op, 17);
  REQUIRE(def);
  const shape dims = operands.front()->dims;
  return make_step(*def, {}, std::move(operands), 0, dtype::float32, dims);
}

} // namespace

TEST_CASE("a recipe of very many steps is computed, given back and released without recursion", "[ops][limits]") {
  weight_ptr w = leaf({1, -2});
  for (int i = 0; i < 100'001; ++i)
    w = step("Neg", {w});
  CHECK(materialise_for_device(*w).values<float>()[1] == 2);
  const weight_ptr other = w;
  w.reset(); // the other holder still has all of it
  CHECK(materialise(*other).values<float>()[0] == -1);
}

TEST_CASE("steps that others share are computed and given back once", "[ops][limits]") {
  weight_ptr w = leaf({1});
  for (int i = 0; i < 60; ++i)
    w = step("Add", {w, w});
  const float result = materialise_for_device(*w).values<float>()[0]; // 2^60 visits if each user visited its operands
  CHECK(result == static_cast<float>(int64_t{1} << 60));
}

TEST_CASE("operands that are shared or absent are there for every step that reads them", "[ops][limits]") {
  const weight_ptr a = leaf({3}), b = step("Neg", {a}), c = step("Mul", {b, a}), d = step("Add", {c, b});
  CHECK(materialise(*step("Clip", {d, nullptr, c})).values<float>()[0] == -12);
}

TEST_CASE("the work of a recipe counts flops, bytes and the steps after it", "[ops][limits]") {
  const weight_ptr a = leaf({1, 2, 3, 4});
  CHECK(recipe_work(*a) == 0);
  const weight_ptr once = step("Neg", {a}), twice = step("Add", {once, once});
  CHECK(recipe_work(*once) == 8);              // 4 elements read, 4 written
  CHECK(recipe_work(*twice) == 8 + 8 + 8 + 4); // both operands' steps, 8 elements read, 4 written
}
