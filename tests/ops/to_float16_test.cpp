#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/operator_launches.hpp"

#include <cmath>
#include <limits>

using namespace troupe;
using namespace troupe::testing;

namespace {

const op_def& row() {
  const op_def* def = find_op("troupe", "ToFloat16", 1);
  REQUIRE(def);
  return *def;
}

float converted(float x) {
  const tensor y = evaluate(row(), {}, std::vector<tensor>{floats({1}, {x})}).at(0);
  return static_cast<float>(*y.data<float16>());
}

} // namespace

TEST_CASE("ToFloat16 keeps finite elements finite", "[ops]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(converted(1.5f) == 1.5f);
  CHECK(converted(-3.4e38f) == -65504);
  CHECK(converted(65519) == 65504);
  CHECK(converted(70000) == 65504);
  CHECK(converted(infinity) == infinity);
  CHECK(converted(-infinity) == -infinity);
  CHECK(std::isnan(converted(std::nanf(""))));
  CHECK(std::signbit(converted(-0.f)));
}

TEST_CASE("the launches of ToFloat16 cover every element, whatever a binding holds", "[ops]") {
  const attributes attrs;
  gpu_features gpu{.max_binding_bytes = 4096, .binding_alignment = 64, .float16 = true};
  for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{1024}, int64_t{5000}}) {
    gpu_call call{attrs, {{.type = dtype::float32, .dims = {count}}}, {{.type = dtype::float16, .dims = {count}}}, gpu};
    const launch_lists lists = troupe_launches("ToFloat16", call);
    REQUIRE(lists.size() == 1);
    int64_t read = 0, written = 0;
    for (const launch& l : lists[0].launches) {
      CHECK(l.bindings[0].offset == read);
      CHECK(l.bindings[1].offset == written);
      CHECK(l.params.at(0) * 4 == l.bindings[0].bytes);
      read += l.bindings[0].bytes;
      written += l.bindings[1].bytes;
    }
    CHECK(read == count * 4);
    CHECK(written == count * 2);
  }
  gpu.float16 = false;
  const gpu_call call{attrs, {{.type = dtype::float32, .dims = {8}}}, {{.type = dtype::float16, .dims = {8}}}, gpu};
  CHECK(troupe_launches("ToFloat16", call).empty());
}
