#include "plan/placement.hpp"

#include "plan/graphs.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using placed = std::vector<device_index>;

namespace {

placed single(const graph_builder& b, const std::vector<device_info>& devices) {
  return place(b.g, devices, {placement_policy::single});
}

/// Adds a node with one int64 output.
value_id integers(graph_builder& b, const op_def& def, std::vector<value_id> inputs, symbolic_shape dims) {
  return b.node_to(def, std::move(inputs), b.value(std::move(dims), dtype::int64));
}

} // namespace

TEST_CASE("every node goes to the first device that can run it", "[plan][B3]") {
  graph_builder b;
  const value_id in = b.input({4});
  value_id v = b.node(plain_op, {in}, {4});
  v = b.node(host_op, {v}, {4});
  b.node(plain_op, {v}, {4});
  CHECK(single(b, gpus_and_fallback(2)) == placed{0, 2, 0});
  // A fallback device comes last, wherever it stands in the list.
  std::vector<device_info> devices = gpus_and_fallback(2);
  std::swap(devices[0], devices[2]);
  CHECK(single(b, devices) == placed{1, 0, 1});
  // A CPU that is no fallback takes everything if it comes first.
  devices[0].fallback = false;
  CHECK(single(b, devices) == placed{0, 0, 0});
}

TEST_CASE("round-robin alternates over the devices that can", "[plan][C6]") {
  graph_builder b;
  value_id v = b.input({4});
  for (int i = 0; i < 3; ++i)
    v = b.node(plain_op, {v}, {4});
  v = b.node(host_op, {v}, {4});
  b.node(plain_op, {v}, {4});
  const auto devices = gpus_and_fallback(2);
  CHECK(place(b.g, devices, {placement_policy::round_robin}) == placed{0, 1, 0, 2, 1});
  std::vector<device_info> equals = gpus_and_fallback(1);
  equals[1].fallback = false;
  CHECK(place(b.g, equals, {placement_policy::round_robin}) == placed{0, 1, 0, 1, 0});
}

TEST_CASE("a node that no device can run is an error that names both", "[plan]") {
  graph_builder b;
  b.node(host_op, {b.input({4})}, {4});
  CHECK_THROWS_WITH(single(b, gpus(2)),
                    Contains("test.host 'n0'") && Contains("vulkan:0, vulkan:1") && Contains("no GPU kernel for host"));
  CHECK_THROWS_AS(place(b.g, gpus(1), {placement_policy::round_robin}), error);
}

TEST_CASE("small integers and views between CPU nodes stay there", "[plan]") {
  graph_builder b;
  const value_id in = b.input({64, 64});
  const value_id made = b.node(host_op, {in}, {64, 64});      // 0: CPU
  const value_id flat = b.node(view_op, {made}, {4096});      // 1: between CPU nodes
  const value_id size = integers(b, host_op, {in}, {2});      // 2: CPU
  const value_id more = integers(b, plain_op, {size}, {2});   // 3: shape arithmetic for a CPU node
  const value_id last = integers(b, plain_op, {more}, {1});   // 4: likewise
  b.node(host_op, {flat, last}, {4});                         // 5: CPU
  const value_id big = integers(b, plain_op, {size}, {4096}); // 6: not small
  b.node(host_op, {big}, {4});                                // 7: CPU
  const value_id sum = b.node(plain_op, {made}, {64, 64});    // 8: tensor work
  const value_id shown = b.node(view_op, {sum}, {4096});      // 9: of a GPU's value
  b.node(host_op, {shown}, {4});                              // 10: CPU
  b.node(view_op, {made}, {4096});                            // 11: read by nobody: an output
  const value_id both = integers(b, plain_op, {size}, {2});   // 12: read by both
  b.node(plain_op, {both}, {4});                              // 13: GPU
  b.node(host_op, {both}, {4});                               // 14: CPU
  CHECK(single(b, gpus_and_fallback(1)) == placed{1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1});
}
