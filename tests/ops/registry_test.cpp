#include "ops/registry.hpp"

#include "support/catch.hpp"

#include <set>
#include <tuple>

using namespace troupe;

TEST_CASE("the operator table lists each row once", "[ops]") {
  std::set<std::tuple<std::string_view, std::string_view, int64_t>> seen;
  for (const op_def* def : all_ops()) {
    INFO(def->domain << "." << def->name << " since " << def->since);
    CHECK(seen.emplace(def->domain, def->name, def->since).second);
  }
}

TEST_CASE("the fields of each row fit each other", "[ops]") {
  for (const op_def* def : all_ops()) {
    INFO(def->domain << "." << def->name << " since " << def->since);
    CHECK(def->infer != nullptr);
    CHECK(def->since <= def->until);
    CHECK(def->inputs.min <= def->inputs.max);
    CHECK((def->inputs.max >= 32 || def->host_inputs >> def->inputs.max == 0));
    CHECK_FALSE((def->alias == aliasing::view && def->repeats)); // a view always repeats if its dims are the input's
    if (is_elementwise(def->layouts) || def->alias != aliasing::none)
      CHECK(def->inputs.min > 0);
    if (def->limited_broadcast) {
      const op_def* modern = find_op(def->domain, def->name, 7);
      CHECK(def->since < 7);
      CHECK(def->layouts == layout_support::plain);
      CHECK((modern && !modern->limited_broadcast && is_elementwise(modern->layouts)));
    }
  }
}

TEST_CASE("each row is the one that its first opset finds", "[ops]") {
  for (const op_def* def : all_ops()) {
    INFO(def->domain << "." << def->name << " since " << def->since);
    CHECK((find_op(def->domain, def->name, def->since) == def));
  }
}
