#include "cost/cost_model.hpp"

#include "ops/registry.hpp"
#include "support/catch.hpp"

using namespace troupe;

namespace {

/// The work of a call of float32 operands.
node_work work_of_call(std::string_view domain, const char* op, attributes attrs, std::vector<shape> inputs,
                       shape output) {
  const op_def* def = find_op(domain, op, newest_opset(domain));
  REQUIRE(def != nullptr);
  const node n{.name = op, .op_type = op, .attrs = std::move(attrs), .def = def};
  call_shapes call{.inputs = std::move(inputs), .output_types = {dtype::float32}, .outputs = {std::move(output)}};
  call.input_types.assign(call.inputs.size(), dtype::float32);
  return work_of(n, call);
}

} // namespace

TEST_CASE("guessed dims that do not fit each other have a cost all the same", "[cost][A14]") {
  // Symbols without a value count as 8 if a plan is predicted, whatever constants stand beside them.
  CHECK(work_of_call("troupe", "MatMul", {}, {{8, 8, 8, 8}, {2, 4, 2, 5}}, {2, 4, 8, 5}).flops ==
        2 * 8 * (2 * 4 * 8 * 5));
  attributes attrs;
  attrs.set("equation", std::string("bij,bjk->bik"));
  CHECK(work_of_call("", "Einsum", attrs, {{8, 8, 8}, {2, 3, 5}}, {8, 8, 5}).flops == 2 * (8 * 8 * 8 * 5));
}
