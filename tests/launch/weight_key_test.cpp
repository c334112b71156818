// One recipe from the file's bytes to the operand of a kernel: its key says what the bytes will be, on the host and on
// the GPU.
#include "launch/launch_table.hpp"
#include "ops/pack.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

#include <set>

using namespace troupe;
using namespace troupe::test;

namespace {

struct variant {
  uint32_t seed = 1;
  std::string folded = "Sigmoid";
  precision wanted = precision::fp16;
};

/// The weight of the product x · folded(W) of a model that is loaded anew, as the rewrite leaves it, and as a GPU's
/// kernel wants it.
struct weights {
  weight_ptr plain, packed;
};

weights weights_of(const variant& v) {
  graph_builder b;
  const value_id w = b.op(v.folded, {b.constant("w", random_tensor({300, 301}, v.seed))});
  b.output(b.op("MatMul", {b.input("x", {50, 300}), w}));
  const graph g = rewrite(b.g, {.precision = v.wanted});
  const gpu_features gpu{.float16 = true};
  for (const node& n : g.nodes)
    if (n.op_type == "MatMul") {
      gpu_call call{n.attrs, {}, {}, gpu};
      for (value_id i : n.inputs)
        call.inputs.push_back(
            {.type = g.values[i].type, .dims = constants(*g.values[i].dims), .constant = g.values[i].constant});
      call.outputs.push_back({.type = g.values[n.outputs[0]].type, .dims = {50, 301}});
      return {call.inputs.at(1).constant, launches_of(*n.def, call).at(0).packed.at(0)};
    }
  FAIL("no product is left");
  return {};
}

} // namespace

TEST_CASE("a folded, converted and packed weight has one key in all sessions, another if any step is another",
          "[ops]") {
  const weights first = weights_of({}), second = weights_of({});
  REQUIRE(first.plain->step->name == "ToFloat16");
  REQUIRE(first.plain->step_inputs[0]->step->name == "Sigmoid");
  CHECK(first.plain->step_inputs[0]->step_inputs[0]->leaf.data() !=
        second.plain->step_inputs[0]->step_inputs[0]->leaf.data());
  CHECK(first.plain->key == second.plain->key);
  CHECK(first.packed->key == second.packed->key);
  const shape dims{1, 300, 301};
  const std::vector<weight_ptr> all{
      first.packed,
      first.plain,
      weights_of({.seed = 2}).packed,
      weights_of({.folded = "Tanh"}).packed,
      weights_of({.wanted = precision::fp32}).packed,
      pack(first.plain, dims, {0, 2, 1}),
      pack(first.plain, dims, {0, 2, 1}, {1, 301, 320}),
      pack(first.plain, {301, 300, 1}, {0, 2, 1}),
      pack(first.plain, dims, {0, 1, 2}),
  };
  std::set<std::string> keys;
  for (const weight_ptr& w : all)
    keys.insert(to_hex(w->key));
  CHECK(keys.size() == all.size());
}
