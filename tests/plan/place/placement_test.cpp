#include "plan/place/placement.hpp"

#include "cost/cost_model.hpp"
#include "plan/graphs.hpp"
#include "plan/place/placement_problem.hpp"
#include "plan/place/policies.hpp"
#include "plan/plan_key.hpp"
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
  // A fallback device comes last, wherever it is in the list.
  std::vector<device_info> devices = gpus_and_fallback(2);
  std::swap(devices[0], devices[2]);
  CHECK(single(b, devices) == placed{1, 0, 1});
  // A CPU that is not a fallback takes everything if it comes first.
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
  CHECK_THROWS_WITH(single(b, gpus(2)), Contains("test.host 'n0'") && Contains("vulkan:0, vulkan:1") &&
                                            Contains("no GPU kernel for test.host"));
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
  b.node(view_op, {made}, {4096});                            // 11: read by no node: an output
  const value_id both = integers(b, plain_op, {size}, {2});   // 12: read by both
  b.node(plain_op, {both}, {4});                              // 13: GPU
  b.node(host_op, {both}, {4});                               // 14: CPU
  CHECK(single(b, gpus_and_fallback(1)) == placed{1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1});
}

TEST_CASE("weighted gives each device a contiguous share by its speed", "[plan][C6]") {
  graph_builder b;
  value_id v = b.input({1024});
  for (int i = 0; i < 12; ++i)
    v = b.node(plain_op, {v}, {1024});
  std::vector<device_info> devices = cpus(3);
  CHECK(place(b.g, devices, {placement_policy::weighted}) == placed{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
  for (auto& d : devices)
    d.profile.launch_s = 0;
  devices[1].profile.memory_bytes_per_s *= 4;
  CHECK(place(b.g, devices, {placement_policy::weighted}) == placed{0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2});
  // A device that cannot run a node leaves it to the next that can.
  b.node(host_op, {v}, {4});
  CHECK(place(b.g, gpus_and_fallback(1), {placement_policy::weighted}).back() == 1);
}

TEST_CASE("placement goes by the measured times of nodes", "[plan][A14][C6]") {
  graph_builder b;
  value_id v = b.input({1024});
  for (int i = 0; i < 12; ++i)
    v = b.node(plain_op, {v}, {1024});
  const auto dims_of = [](value_id) { return shape{1024}; };
  const hash128 key = identity_of(b.g, b.g.nodes[5], shapes_of(b.g, b.g.nodes[5], dims_of)).key;
  std::vector<device_info> devices = cpus(3);
  const auto measured = [&](device_index d, const measured_nodes& nodes) {
    devices[d].profile.measured = std::make_shared<const node_times>(nodes);
  };
  const plan_options weighted{placement_policy::weighted};
  measured(1, {.nodes = {{key, 2.0}}, .operators = {{"test.plain", {1, 1e5}}}});
  for (device_index d : {0, 2})
    measured(d, {.nodes = {{key, 8.0}}, .operators = {}});
  CHECK(place(b.g, devices, weighted) == placed{0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2});
  devices[1].profile.measured = nullptr; // by the roofline, far less than eight seconds
  CHECK(place(b.g, devices, weighted) == placed(12, 1));
}

TEST_CASE("pins hold under every policy", "[plan][pins]") {
  graph_builder b;
  value_id v = b.input({4});
  for (int i = 0; i < 4; ++i)
    v = b.node(plain_op, {v}, {4}); // n0 makes v1 …
  v = b.node(host_op, {v}, {4});    // n4 makes v5
  const auto devices = gpus_and_fallback(2);
  for (const policy_row& row : policies()) {
    INFO(row.name);
    const auto pinned = [&](std::vector<placement_pin> pins) {
      return place(b.g, devices, {.policy = row.policy, .pins = std::move(pins)});
    };
    CHECK(pinned({{"n?", "vulkan:1"}, {"n4", "cpu#0"}, {"v3", "vulkan:0"}}) == placed{1, 1, 0, 1, 2});
    CHECK(pinned({{"*", "cpu#0"}}) == placed{2, 2, 2, 2, 2});
    CHECK_THROWS_WITH(pinned({{"n1", "gpu"}}), Contains("vulkan:0, vulkan:1, cpu#0"));
    CHECK_THROWS_WITH(pinned({{"n9", "vulkan:0"}}), Contains("'n9' holds for no node"));
    CHECK_THROWS_WITH(pinned({{"n4", "vulkan:0"}}), Contains("cannot run it: no GPU kernel for test.host"));
  }
}

TEST_CASE("patterns of pins", "[plan][pins]") {
  CHECK(matches("*", ""));
  CHECK(matches("a*b*c", "aXbYbZc"));
  CHECK(matches("layer?/*", "layer1/conv"));
  CHECK_FALSE(matches("layer?/*", "layer12/conv"));
  CHECK_FALSE(matches("a*b", "abc"));
  CHECK_FALSE(matches("", "a"));
  CHECK(matches("a**", "a"));
}

TEST_CASE("a plan's key tells only clearly different free memory apart", "[plan][E6]") {
  const auto key = [](int64_t bytes) {
    std::vector<device_info> devices = cpus(1);
    devices[0].memory_bytes = bytes;
    return plan_key(hash128{1, 2}, devices, {});
  };
  CHECK(key(1'000'000'000) == key(1'000'000'000 + 300'000));
  CHECK(key(1'000'000'000) != key(1'200'000'000));
  CHECK(key(0) != key(1));
}
