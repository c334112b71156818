#include "plan/estimate/gpu_support.hpp"

#include "plan/graphs.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

std::vector<launch_list> throwing_launch(const gpu_call&) {
  fail(errc::invalid_model, "strange attributes");
}

std::vector<launch_list> only_float16(const gpu_call& call) {
  return call.gpu.float16 ? any_launch(call) : launch_lists{};
}

/// Takes the representative operands that it expects: [8, 8] beside known elements {8, 2}.
std::vector<launch_list> careful_launch(const gpu_call& call) {
  const bool first = call.inputs.at(0).dims == shape{representative_dim, 8} &&
                     call.outputs.at(0).dims == shape{2 * representative_dim, representative_dim, 4};
  const tensor& known = call.inputs.at(1).known;
  const bool second =
      known.defined() && known.values<int64_t>()[0] == representative_dim && known.values<int64_t>()[1] == 2;
  return first && second && call.inputs.at(2).constant ? any_launch(call) : launch_lists{};
}

gpu_obstacle obstacle(const graph_builder& b, node_id n, const gpu_features& gpu = {}) {
  return gpu_support(b.g).obstacle(n, gpu);
}

} // namespace

TEST_CASE("operators are asked with representative dims and known elements", "[plan]") {
  const op_def& careful = gpu_op(plain_op, careful_launch);
  graph_builder b;
  const dim n = dim::symbol("n"), m = dim::symbol("m");
  const value_id in = b.input({n, 8});
  const value_id known = b.known({2}, {n, 2});
  const value_id w = b.g.add_constant("w", tensor::scalar(1.f));
  // n - 100 is negative for the representative n, and m is divided by zero.
  b.node(careful, {in, known, w}, {n + m, n - 100, 4});
  b.node(careful, {in, known, w}, {n + m, floor_div(m, n - representative_dim), 4});
  b.node(careful, {in, known, w}, {n, m, 4});
  CHECK(obstacle(b, 0) == gpu_obstacle::none);
  CHECK(obstacle(b, 1) == gpu_obstacle::none);
  CHECK(obstacle(b, 2) == gpu_obstacle::no_kernel);
}

TEST_CASE("nodes that a GPU cannot run are told apart", "[plan]") {
  const op_def &throwing = gpu_op(plain_op, throwing_launch), &float16 = gpu_op(plain_op, only_float16);
  graph_builder b;
  const value_id in = b.input({4});
  b.node(host_op, {in}, {4});                              // 0
  b.node(throwing, {in}, {4});                             // 1
  b.node(float16, {in}, {4});                              // 2
  b.node_to(plain_op, {in}, b.value({4}, dtype::string));  // 3
  const value_id found = b.data_dependent(plain_op, {in}); // 4
  b.node(plain_op, {found}, *b.g.values[found].dims);      // 5: its dims are known when it is bound
  b.node(view_op, {in}, {2, 2});                           // 6
  b.node(plain_op, {in}, {1 << 16, 1 << 16});              // 7
  b.node(plain_op, {in}, {1 << 16, 1 << 15});              // 8
  b.node(plain_op, {in}, {4});                             // 9: has a body
  b.g.nodes[9].attrs.set("body", std::make_shared<const graph>());
  b.node(plain_op, {in}, {int64_t{1} << 62, int64_t{1} << 62, 0}); // 10: empty
  CHECK(obstacle(b, 0) == gpu_obstacle::no_kernel);
  CHECK(obstacle(b, 1) == gpu_obstacle::no_kernel);
  CHECK(obstacle(b, 2) == gpu_obstacle::no_kernel);
  CHECK(obstacle(b, 2, {.float16 = true}) == gpu_obstacle::none);
  CHECK(obstacle(b, 3) == gpu_obstacle::strings);
  CHECK(obstacle(b, 4) == gpu_obstacle::data_dependent);
  CHECK(obstacle(b, 5) == gpu_obstacle::none);
  CHECK(obstacle(b, 6) == gpu_obstacle::none);
  CHECK(obstacle(b, 7) == gpu_obstacle::too_large);
  CHECK(obstacle(b, 8) == gpu_obstacle::none);
  CHECK(obstacle(b, 9) == gpu_obstacle::control_flow);
  CHECK(obstacle(b, 10) == gpu_obstacle::none);
  CHECK(describe(gpu_obstacle::no_kernel, b.g.nodes[0]) == "no GPU kernel for test.host");
}
