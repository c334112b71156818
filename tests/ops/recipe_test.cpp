// Weight recipes: files decide how many steps depend on each other and how they share operands.
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"

#include <set>

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
  return make_step(*def, {}, std::move(operands), dtype::float32, dims);
}

/// The parts of Split(w) along its only axis, all of them to be computed.
std::vector<weight_ptr> split(const weight_ptr& w, int64_t parts) {
  const op_def* def = find_op("", "Split", 13);
  REQUIRE(def);
  const std::vector<dtype> types(static_cast<size_t>(parts), dtype::float32);
  const std::vector<shape> dims(static_cast<size_t>(parts), {w->dims[0] / parts});
  std::vector<weight_ptr> made;
  for (uint32_t i = 0; i < types.size(); ++i)
    made.push_back(make_step(*def, {}, {w}, i, types, dims));
  return made;
}

} // namespace

TEST_CASE("a step computes as many outputs as its node has, and its key says so", "[ops]") {
  const weight_ptr w = leaf({1, 2, 3, 4, 5, 6});
  const std::vector<weight_ptr> thirds = split(w, 3), halves = split(w, 2);
  std::set<hash128, decltype([](const hash128& a, const hash128& b) { return to_hex(a) < to_hex(b); })> keys;
  for (size_t i = 0; i < thirds.size(); ++i) {
    const tensor part = materialise(*thirds[i]);
    REQUIRE(part.dims() == shape{2});
    CHECK(part.values<float>()[0] == static_cast<float>(2 * i + 1));
    keys.insert(thirds[i]->key);
  }
  for (size_t i = 0; i < halves.size(); ++i) {
    const tensor part = materialise(*halves[i]);
    REQUIRE(part.dims() == shape{3});
    CHECK(part.values<float>()[0] == static_cast<float>(3 * i + 1));
    keys.insert(halves[i]->key);
  }
  CHECK(keys.size() == 5);
  CHECK(recipe_work(*thirds[0]) == 12); // all 6 elements read, and all written
}

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
