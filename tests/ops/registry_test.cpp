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
