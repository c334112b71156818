#include "launch/cpu_work.hpp"

#include "launch/launch_table.hpp"
#include "support/catch.hpp"

#include <set>
#include <sstream>

using namespace troupe;

namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

/// Whether GPUs run a row: by launches, as calls of others, or by doing nothing.
bool runs_on_gpus(const op_def& def) {
  return has_launch_rules(def) || def.expand || def.alias == aliasing::view;
}

} // namespace

TEST_CASE("operators that stay on the CPU are those without launch rules", "[launch]") {
  std::set<std::string> listed, found;
  for (const cpu_operators& row : operators_on_cpu())
    for (const std::string& name : words_of(row.operators)) {
      INFO(row.domain << " " << name);
      CHECK(listed.insert(fmt::format("{} {}", row.domain, name)).second);
      bool known = false;
      for (const op_def* def : all_ops())
        if (def->domain == row.domain && def->name == name) {
          known = true;
          CHECK_FALSE(has_launch_rules(*def));
        }
      CHECK(known);
    }
  std::set<std::string> on_gpus; // by some row: those of old opsets become newer ones in the rewrite
  for (const op_def* def : all_ops())
    if (runs_on_gpus(*def))
      on_gpus.insert(fmt::format("{} {}", def->domain, def->name));
  for (const op_def* def : all_ops())
    if (const std::string name = fmt::format("{} {}", def->domain, def->name);
        def->reference && !on_gpus.contains(name))
      found.insert(name);
  for (const std::string& name : found) {
    INFO(name);
    CHECK(listed.contains(name));
  }
}

TEST_CASE("calls that stay on the CPU are of operators that GPUs run", "[launch]") {
  for (const cpu_calls& row : calls_on_cpu())
    for (const std::string& name : words_of(row.operators)) {
      INFO(name);
      const op_def* def = find_op("", name, newest_opset(""));
      if (!def) // removed
        def = find_op("", name, 9);
      REQUIRE(def != nullptr);
      CHECK(has_launch_rules(*def));
    }
}
