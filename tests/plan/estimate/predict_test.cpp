#include "plan/estimate/predict.hpp"

#include "plan/graphs.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Devices on which everything is free unless a test sets it.
std::vector<device_info> free_devices(std::vector<device_info> devices) {
  for (device_info& d : devices) {
    d.profile.memory_bytes_per_s = 1e18;
    d.profile.launch_s = d.profile.barrier_s = d.profile.chunk_s = d.profile.submit_s = 0;
  }
  return devices;
}

/// Three nodes, one after the other.
std::shared_ptr<const graph> three_in_a_row() {
  graph_builder b;
  value_id v = b.input({1000});
  for (int i = 0; i < 3; ++i)
    v = b.node(plain_op, {v}, {1000});
  return b.done({v});
}

prediction predicted(const std::shared_ptr<const plan>& p) {
  return predict(*p, bind_segment(p, 0, {})->dims);
}

} // namespace

TEST_CASE("a chain's predicted time is the sum of its nodes, moves and answers", "[plan][cost]") {
  const auto g = three_in_a_row();
  std::vector<device_info> devices = free_devices(gpus(2));
  for (device_info& d : devices) {
    d.profile.launch_s = 1;
    d.profile.barrier_s = 0.25;
    d.profile.chunk_s = 10;
    d.profile.up = {.bytes_per_s = 4000, .latency_s = 0.5};
    d.profile.down = {.bytes_per_s = 8000, .latency_s = 0};
    d.profile.input_bytes_per_s = 2000;
  }
  // The host's copy 2, up 1.5, three launches, two barriers, down 0.5, the answer 10.
  const prediction one = predicted(make_plan(g, {devices[0]}, {}));
  CHECK(one.makespan_s == Approx(2 + 1.5 + 3 + 0.5 + 0.5 + 10));
  CHECK(one.busy_s.at(0) == Approx(5.5));
  CHECK(one.chunks.at(0).copy_s == Approx(2));
  // Node by node on alternating devices: each chunk is up, launch, down; the next waits for the answer.
  const prediction two = predicted(make_plan(g, devices, {placement_policy::round_robin}));
  CHECK(two.makespan_s == Approx(2 + 3 * (1.5 + 1 + 0.5) + 3 * 10));
  CHECK(two.busy_s.at(0) == Approx(6));
  CHECK(two.busy_s.at(1) == Approx(3));
}

TEST_CASE("threads that slept are woken for a chunk", "[plan][cost]") {
  const auto g = three_in_a_row();
  std::vector<device_info> devices = free_devices(cpus(2));
  for (device_info& d : devices) {
    d.profile.launch_s = 1;
    d.profile.wake_s = 0.25;
  }
  CHECK(predicted(make_plan(g, {devices[0]}, {})).makespan_s == Approx(3)); // it is awake
  const auto turns = predicted(make_plan(g, devices, {placement_policy::round_robin}));
  CHECK(turns.makespan_s == Approx(3 + 2 * 0.25)); // each has slept while the other worked
  for (device_info& d : devices)
    d.processor = "both";
  CHECK(predicted(make_plan(g, devices, {placement_policy::round_robin})).makespan_s == Approx(3 + 2 * 0.25));
  for (device_info& d : devices)
    d.profile.launch_s = 1e-5; // too short a wait to fall asleep, but on one processor the other has worked
  CHECK(predicted(make_plan(g, devices, {placement_policy::round_robin})).makespan_s == Approx(3e-5 + 2 * 0.25));
}

TEST_CASE("devices that share a GPU take longer while both have work, by a quarter of the work that they do at once",
          "[plan][cost]") {
  graph_builder b;
  const value_id in = b.input({4});
  std::vector<value_id> outputs;
  for (int i = 0; i < 4; ++i)
    outputs.push_back(b.node(plain_op, {in}, {4}));
  const auto side_by_side = b.done(outputs);
  std::vector<device_info> devices = free_devices(gpus(2));
  for (device_info& d : devices) {
    d.processor = "both";
    d.profile.input_bytes_per_s = 1e18;
    d.profile.up = d.profile.down = {};
  }
  devices[0].profile.launch_s = 2;
  devices[1].profile.launch_s = 8;
  // A chunk of two nodes each: 4 and 16. The second one waits for the first, and takes a quarter of the shorter one
  // longer.
  CHECK(predicted(make_plan(side_by_side, devices, {placement_policy::round_robin})).makespan_s == Approx(20 + 1));
  CHECK(predicted(make_plan(side_by_side, {devices[0]}, {})).makespan_s == Approx(8));
  devices[1].processor = "another";
  CHECK(predicted(make_plan(side_by_side, devices, {placement_policy::round_robin})).makespan_s == Approx(16));
  for (device_info& d : devices)
    d.processor = "cpu"; // a driver's threads on the host's cores take no turns
  CHECK(predicted(make_plan(side_by_side, devices, {placement_policy::round_robin})).makespan_s == Approx(20));
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
  const value_id found = b.data_dependent(plain_op, {b.input({4})});
  const auto g = b.done({b.node(plain_op, {found}, *b.g.values[found].dims)});
  std::vector<device_info> devices = free_devices(cpus(1));
  devices[0].profile.launch_s = 1;
  devices[0].profile.chunk_s = 10;
  const auto p = make_plan(g, devices, {});
  REQUIRE(p->segment_count == 2);
  CHECK(predict(*p, expected_dims(*p->program, {})).makespan_s == Approx(22));
}

TEST_CASE("large copies go beside the work of the chunks around", "[plan][cost][C7][C2]") {
  std::vector<device_info> devices = free_devices(gpus(2));
  devices[0].profile.chunk_s = 0.5;
  const double large = 2 * copies_beside_bytes;
  // Three pieces: in 2, work 3, out 1 each.
  std::vector<chunk_cost> chunks(3, {.in_s = 2, .work_s = 3, .out_s = 1, .in_bytes = large, .out_bytes = large});
  chunks[1].predecessors = {0};
  chunks[2].predecessors = {1};
  CHECK(play(chunks, devices).makespan_s == Approx(18.5));
  devices[0].copies_beside_work = true;
  // In 2; work 3, 3, 3; the last one's copies out stay after its work.
  const prediction beside = play(chunks, devices);
  CHECK(beside.makespan_s == Approx(2 + 9 + 1 + 0.5));
  CHECK(beside.busy_s[0] == Approx(18));
  CHECK(beside.chunks[1].begin_s == Approx(2)); // its copies in
  CHECK(beside.chunks[0].end_s == Approx(6));
  // Small copies do not pay for the wait between queues.
  for (chunk_cost& c : chunks)
    c.in_bytes = c.out_bytes = 1000;
  CHECK(play(chunks, devices).makespan_s == Approx(18.5));
  // Copies out go with their chunk if the next one waits for a chunk that may wait for them.
  chunks = {{.work_s = 3, .out_s = 1, .out_bytes = large},
            {.device = 1, .work_s = 10, .predecessors = {0}},
            {.work_s = 3, .predecessors = {0, 1}}};
  CHECK(play(chunks, devices).chunks[0].end_s == Approx(4));
  CHECK(play(chunks, devices).makespan_s == Approx(4 + 0.5 + 10 + 3 + 0.5));
  // They go beside its work if no other device waits for them, whatever it waits for itself.
  chunks[1] = {.device = 1, .work_s = 3};
  CHECK(play(chunks, devices).makespan_s == Approx(3 + 3 + 0.5));
}

TEST_CASE("an arena has room for the copies of the neighbours, not for more", "[plan][cost][C7]") {
  std::vector<device_info> devices = free_devices(gpus(1));
  devices[0].copies_beside_work = true;
  const double large = 2 * copies_beside_bytes;
  // Copies in that could all come at once: the fourth waits for the work of the second.
  std::vector<chunk_cost> chunks(4, {.in_s = 1, .work_s = 10, .in_bytes = large});
  for (chunk_id c = 1; c < 4; ++c)
    chunks[c].predecessors = {c - 1};
  const prediction in = play(chunks, devices);
  CHECK(in.chunks[2].begin_s == Approx(11));
  CHECK(in.chunks[3].begin_s == Approx(21));
  // Copies out that take longer than the work: the third chunk waits for the first one's.
  for (chunk_cost& c : chunks)
    c = {.work_s = 1, .out_s = 10, .out_bytes = large, .predecessors = c.predecessors};
  const prediction out = play(chunks, devices);
  CHECK(out.chunks[0].end_s == Approx(11));
  CHECK(out.chunks[2].begin_s == Approx(11));
}
