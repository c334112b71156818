#include "ops/registry.hpp"

#include "ops/attribute_kinds.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"
#include "support/places.hpp"
#include "support/thrown.hpp"

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
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::test_data() + "/../../src/ops")) {
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

TEST_CASE("a word that an operator does not know is refused when shapes are inferred", "[ops]") {
  const auto refusal = [](const std::string& op, const char* name, const attribute& word, dtype type,
                          const std::vector<symbolic_shape>& inputs, int64_t opset = 24) {
    return std::string(test::thrown_by([&] {
                         test::graph_builder b(opset);
                         std::vector<value_id> operands;
                         for (const symbolic_shape& dims : inputs)
                           operands.push_back(b.input(dims, operands.empty() ? type : dtype::int64));
                         if (op == "ScatterElements" || op == "ScatterND" || op == "TensorScatter")
                           b.g.values[operands[op == "TensorScatter" ? 1 : 2]].type = type;
                         if (op == "BitShift" || op == "LSTM" || op == "GRU" || op == "RNN")
                           for (value_id v : operands)
                             b.g.values[v].type = type;
                         b.inferred(op, operands, test::attrs_of({{name, word}}));
                       }).what());
  };
  using Catch::Contains;
  const std::string none = "no such";
  const std::vector<symbolic_shape> recurrent{{5, 2, 4}, {1, 3, 4}, {1, 3, 3}};
  CHECK_THAT(refusal("BitShift", "direction", none, dtype::uint8, {{4}, {4}}),
             Contains("'direction' is 'no such', not LEFT"));
  CHECK_THAT(refusal("Gelu", "approximate", none, dtype::float32, {{4}}),
             Contains("'approximate' is 'no such', not none"));
  CHECK_THAT(refusal("Pad", "mode", none, dtype::float32, {{4}, {2}}), Contains("'mode' is 'no such', not constant"));
  CHECK_THAT(refusal("ScatterElements", "reduction", none, dtype::float32, {{4}, {2}, {2}}),
             Contains("'reduction' is"));
  CHECK_THAT(refusal("ScatterND", "reduction", none, dtype::float32, {{4}, {2, 1}, {2}}), Contains("'reduction' is"));
  CHECK_THAT(refusal("TensorScatter", "mode", none, dtype::float32, {{2, 4, 3}, {2, 1, 3}}), Contains("'mode' is"));
  CHECK_THAT(refusal("RNN", "activations", std::vector{none}, dtype::float32, recurrent),
             Contains("'activations' has"));
  for (const char* name : {"mode", "coordinate_transformation_mode", "nearest_mode", "keep_aspect_ratio_policy"})
    CHECK_THAT(refusal("Resize", name, none, dtype::float32, {{4}}),
               Contains(fmt::format("'{}' is 'no such', not", name)));
}
