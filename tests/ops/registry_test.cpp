#include "ops/registry.hpp"

#include "ops/attribute_kinds.hpp"
#include "support/catch.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
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

namespace {

/// Files of operators of our own domain, whose attributes no file states.
bool is_our_own(const std::string& file) {
  static const std::regex ours("(fused_|projections|reorder|task|deferred|to_float16|pack).*");
  return std::regex_match(file, ours);
}

/// Returns the kinds of attribute `name` that any operator may have.
uint32_t kinds_of_any(std::string_view name) {
  uint32_t kinds = 0;
  for (const op_def* def : all_ops())
    kinds |= attribute_kinds(def->name, name);
  return kinds;
}

} // namespace

TEST_CASE("each attribute that an operator reads has its kind listed", "[ops]") {
  const std::map<std::string, attribute> getters{{"integer", int64_t()},
                                                 {"axis", int64_t()},
                                                 {"real", 0.f},
                                                 {"text", std::string()},
                                                 {"tensor_value", tensor()},
                                                 {"integers", std::vector<int64_t>()},
                                                 {"reals", std::vector<float>()},
                                                 {"texts", std::vector<std::string>()}};
  const std::set<std::string> of_several_kinds{"activation_alpha", "activation_beta", "aggregate_function",
                                               "nodes_modes",      "post_transform",  "quant_type"};
  const std::regex read("\\.(integer|axis|real|text|tensor_value|integers|reals|texts)\\(\"(\\w+)\"[,)]");
  size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TROUPE_TEST_DATA "/../../src/ops")) {
    if (is_our_own(entry.path().filename().string()))
      continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string source = text.str();
    for (std::sregex_iterator it(source.begin(), source.end(), read), end; it != end; ++it, ++found) {
      INFO(entry.path() << ": " << it->str());
      CHECK((of_several_kinds.contains((*it)[2]) ||
             (kinds_of_any((*it)[2].str()) >> getters.at((*it)[1]).index() & 1) != 0));
    }
  }
  CHECK(found > 300);
}
