#include "plan/predict.hpp"

#include "plan/granularity.hpp"
#include "plan/graphs.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Devices on which everything but what a test sets is free.
std::vector<device_info> free_devices(std::vector<device_info> devices) {
  for (device_info& d : devices) {
    d.profile.memory_bytes_per_s = 1e18;
    d.profile.launch_s = d.profile.barrier_s = d.profile.chunk_s = 0;
  }
  return devices;
}

prediction predicted(const std::shared_ptr<const plan>& p) {
  return predict(*p, bind_segment(p, 0, {})->dims);
}

} // namespace

TEST_CASE("a chain's predicted time is the sum of its nodes, moves and answers", "[plan][cost]") {
  graph_builder b;
  value_id v = b.input({1000});
  for (int i = 0; i < 3; ++i)
    v = b.node(plain_op, {v}, {1000});
  const auto g = b.done({v});
  std::vector<device_info> devices = free_devices(gpus(2));
  for (device_info& d : devices) {
    d.profile.launch_s = 1;
    d.profile.barrier_s = 0.25;
    d.profile.chunk_s = 10;
    d.profile.up = {.bytes_per_s = 4000, .latency_s = 0.5};
    d.profile.down = {.bytes_per_s = 8000, .latency_s = 0};
  }
  // Up 1.5, three launches, two barriers, down 0.5, the answer 10.
  const prediction one = predicted(make_plan(g, {devices[0]}, {}));
  CHECK(one.makespan_s == Approx(1.5 + 3 + 0.5 + 0.5 + 10));
  CHECK(one.busy_s.at(0) == Approx(5.5));
  CHECK(one.chunks.at(0).copy_s == Approx(2));
  // Node by node on alternating devices: each chunk is up, launch, down; the next waits for the answer.
  const prediction two = predicted(make_plan(g, devices, {placement_policy::round_robin}));
  CHECK(two.makespan_s == Approx(3 * (1.5 + 1 + 0.5) + 3 * 10));
  CHECK(two.busy_s.at(0) == Approx(6));
  CHECK(two.busy_s.at(1) == Approx(3));
}

TEST_CASE("devices work side by side, a device's chunks one after the other", "[plan][cost]") {
  graph_builder b;
  const value_id in = b.input({4});
  std::vector<value_id> outputs;
  for (int i = 0; i < 6; ++i)
    outputs.push_back(b.node(plain_op, {in}, {4}));
  std::vector<device_info> devices = free_devices(cpus(2));
  devices[0].profile.launch_s = 1;
  devices[1].profile.launch_s = 3;
  CHECK(predicted(make_plan(b.done(outputs), devices, {placement_policy::round_robin})).makespan_s == Approx(9));
}

TEST_CASE("a data-dependent segment starts when the one before has ended", "[plan][cost]") {
  graph_builder b;
  const value_id found = b.data_dependent({b.input({4})});
  const auto g = b.done({b.node(plain_op, {found}, *b.g.values[found].dims)});
  std::vector<device_info> devices = free_devices(cpus(1));
  devices[0].profile.launch_s = 1;
  devices[0].profile.chunk_s = 10;
  const auto p = make_plan(g, devices, {});
  REQUIRE(p->segment_count == 2);
  CHECK(predict(*p, expected_dims(*p->program, {})).makespan_s == Approx(22));
}

TEST_CASE("waves are submitted apart only where read-back hides behind work", "[plan][E7]") {
  // Launch cost.
  CHECK(choose_granularity({.waves = 3, .submit_s = 1, .readback_s = 2.1, .work_after_s = 5}) == granularity::by_wave);
  CHECK(choose_granularity({.waves = 3, .submit_s = 1.1, .readback_s = 2.1, .work_after_s = 5}) == granularity::fused);
  // Density: too little work to hide behind.
  CHECK(choose_granularity({.waves = 3, .submit_s = 1, .readback_s = 2.1, .work_after_s = 1}) == granularity::fused);
  // Read-back volume.
  CHECK(choose_granularity({.waves = 3, .submit_s = 1, .readback_s = 0, .work_after_s = 5}) == granularity::fused);
  CHECK(choose_granularity({.waves = 1, .submit_s = 0, .readback_s = 2, .work_after_s = 5}) == granularity::fused);
}

TEST_CASE("a chunk's read-back is what is made before its last wave", "[plan][E7]") {
  graph_builder b;
  const value_id first = b.node(plain_op, {b.input({1000})}, {1000});
  const value_id second = b.node(plain_op, {first}, {1000});
  const value_id last = b.node(plain_op, {second}, {1000});
  std::vector<device_info> devices = free_devices(gpus(1));
  devices[0].profile.launch_s = 2;
  devices[0].profile.chunk_s = 0.5;
  devices[0].profile.down = {.bytes_per_s = 4000, .latency_s = 0};
  const auto p = make_plan(b.done({first, last}), devices, {});
  const submission_facts facts = facts_of(*p, p->chunks.at(0), bind_segment(p, 0, {})->dims);
  CHECK(facts.waves == 3);
  CHECK(facts.submit_s == 0.5);
  CHECK(facts.readback_s == Approx(1));
  CHECK(facts.work_after_s == Approx(4));
}
