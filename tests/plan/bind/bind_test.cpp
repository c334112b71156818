#include "plan/bind/bound_plan.hpp"

#include "plan/graphs.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

TEST_CASE("a bound call has concrete dims, constants and known elements", "[plan]") {
  graph_builder b;
  const dim n = dim::symbol("n");
  const value_id in = b.input({n, 8});
  const value_id known = b.known({2}, {n, 2});
  const value_id w = b.g.add_constant("w", tensor::scalar(1.f));
  b.g.values[in].layout = layout::plain;
  const value_id out = b.node(plain_op, {in, no_value, known, w}, {n, 4});
  const auto p = make_plan(b.done({out}), gpus(1), {});
  const auto bound = bind_segment(p, 0, {{"n", 5}});
  const gpu_features gpu;
  const gpu_call call = make_gpu_call(*bound, p->program->nodes[0], gpu);
  REQUIRE(call.inputs.size() == 4);
  CHECK(call.inputs[0].dims == shape{5, 8});
  CHECK(!call.has_input(1));
  CHECK(call.inputs[2].known.values<int64_t>()[0] == 5);
  CHECK(call.inputs[3].constant != nullptr);
  CHECK(call.outputs[0].dims == shape{5, 4});
  CHECK(!call.outputs[0].unsized);
  const auto huge = bind_segment(p, 0, {{"n", int64_t{1} << 30}});
  CHECK_THROWS_WITH(make_gpu_call(*huge, p->program->nodes[0], gpu), Contains("2^32 elements"));
}
