// What operators say of their axes: permuted, cut and combined along each, their reference kernels give the same.
#include "ops/axes.hpp"
#include "ops/conformance_case.hpp"
#include "ops/registry.hpp"
#include "support/axis_checks.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/sample_calls.hpp"

#include <cstdlib>
#include <iostream>

using namespace troupe;
using namespace troupe::test;

TEST_CASE("calls of all operators give the same in parts along their axes", "[ops][C1][axes]") {
  axis_counts counts;
  for (const sample_call& c : read_sample_calls(true)) {
    INFO(c.name);
    CHECK(check_axes(*c.def, c.attrs, c.inputs, c.outputs, counts) == "");
  }
  CHECK(counts.mapped > 300);
  CHECK(counts.reduced > 5);
  CHECK(counts.windowed > 3);
}

// TROUPE_CORPUS=FOLDER OF CASES troupe_tests "cases give the same in parts along their axes"
TEST_CASE("cases give the same in parts along their axes", "[ops][slow][axes]") {
  const char* corpus = std::getenv("TROUPE_CORPUS");
  if (!corpus) {
    WARN("skipped: TROUPE_CORPUS does not name a folder of unpacked ONNX cases");
    return;
  }
  axis_counts counts;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    if (!std::filesystem::exists(entry.path() / "model.onnx"))
      continue;
    const auto loaded = testing::load_single_node_case(entry.path());
    const op_def* def = loaded ? find_op(loaded->domain, loaded->op_type, loaded->opset) : nullptr;
    for (size_t i = 0; def && i < loaded->data_sets.size(); ++i) {
      INFO(loaded->name);
      const auto& data = loaded->data_sets[i];
      CHECK(check_axes(*def, loaded->attrs, data.inputs, data.expected.size(), counts) == "");
    }
  }
  std::cout << counts.mapped << " mapped, " << counts.reduced << " reduced, " << counts.windowed << " windowed\n";
  CHECK(counts.mapped > 0);
}

TEST_CASE("every operator says what it does along its axes, or why it has none", "[ops][C1][axes]") {
  int all = 0, with = 0;
  for (const op_def* def : all_ops()) {
    INFO(def->domain << " " << def->name << " " << def->since);
    CHECK(why_no_axes(*def) != "does not say what it does along any axis");
    all += def->domain.empty();
    with += def->domain.empty() && why_no_axes(*def).empty();
  }
  CHECK(with >= 0.85 * all);
}

TEST_CASE("a dim that a call mixes has no axis", "[ops][C1][axes]") {
  graph_builder b;
  const value_id x = b.input({4, 6, 5}), y = b.op("Softmax", {x}, attrs_of({{"axis", int64_t{1}}}));
  b.output(y);
  graph g = inferred(b.g);
  const infer_context context(g, g.nodes[0]);
  const call_axes axes = axes_of(context);
  REQUIRE(axes.all().size() == 2);
  CHECK(axes.all()[0].inputs[0]->axis == 0);
  CHECK(axes.all()[1].inputs[0]->axis == 2);
}
