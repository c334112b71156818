// Steps of weights from another host: they mean the same as there, or are refused.
#include "wire/weights.hpp"

#include "base/limits.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const tensor& whole() {
  static const tensor w = random_tensor({768, 768}, 1);
  return w;
}

/// Rows of one of `outputs` equal parts.
weight_ptr part(uint32_t output, uint32_t outputs, int64_t rows) {
  std::vector<wire::flat_weight> table{
      wire::flat_leaf{whole()},
      wire::flat_step{dtype::float32, {rows, 768}, wire::flat_of(*find_op("", "Split", 13)), {}, {0}, output, outputs}};
  wire::open_leaves open;
  return wire::make_weights(std::move(table), 1 << 20, open).at(1);
}

} // namespace

TEST_CASE("a part of a weight from another host is one of as many as there", "[wire]") {
  for (const uint32_t parts : {2u, 3u})
    for (uint32_t i = 0; i < parts; ++i) {
      const int64_t rows = 768 / parts;
      const tensor made = materialise(*part(i, parts, rows));
      REQUIRE(made.dims() == shape{rows, 768});
      CHECK(made.values<float>()[0] == whole().values<float>()[static_cast<size_t>(i * rows * 768)]);
    }
  CHECK_FALSE(part(0, 2, 384)->key == part(0, 3, 256)->key);
}

TEST_CASE("a step from another host has the output that it names, and not too many", "[wire]") {
  CHECK_THROWS_AS(part(0, 0, 768), error);
  CHECK_THROWS_AS(part(3, 3, 256), error);
  CHECK_THROWS_AS(part(0, 2, 256), error);
  static_assert(limits::step_outputs < 384);
  CHECK_THROWS_AS(part(0, 384, 2), error);
}
