#include "ops/conformance_case.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"

#include <cstdlib>
#include <iostream>

using namespace troupe;
using namespace troupe::testing;

// TROUPE_CORPUS=FOLDER OF CASES [TROUPE_CORPUS_OPS=Add,Sub] troupe_tests "Single-node cases*"
TEST_CASE("Single-node cases of the ONNX corpus agree", "[ops][slow]") {
  const char* corpus = std::getenv("TROUPE_CORPUS");
  if (!corpus) {
    WARN("skipped: TROUPE_CORPUS does not name a folder of unpacked ONNX cases");
    return;
  }
  const char* only = std::getenv("TROUPE_CORPUS_OPS");
  std::map<std::string, std::pair<int, int>> passed_of; // by operator: passed, run
  int without_row = 0, not_single = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    if (!std::filesystem::exists(entry.path() / "model.onnx"))
      continue;
    const auto loaded = load_single_node_case(entry.path());
    if (!loaded) {
      ++not_single;
      continue;
    }
    if (only && fmt::format(",{},", only).find(fmt::format(",{},", loaded->op_type)) == std::string::npos)
      continue;
    const op_def* def = find_op(loaded->domain, loaded->op_type, loaded->opset);
    if (!def || !def->reference) {
      ++without_row;
      continue;
    }
    const std::string problem = run_case(*loaded, def);
    auto& [passed, run] = passed_of[loaded->op_type];
    ++run;
    passed += problem.empty();
    if (!problem.empty())
      FAIL_CHECK(loaded->name << ": " << problem);
  }
  CHECK_FALSE(passed_of.empty());
  for (const auto& [op, counts] : passed_of)
    std::cout << op << " " << counts.first << "/" << counts.second << "\n";
  std::cout << "no row: " << without_row << ", not a single-node case: " << not_single << "\n";
}
