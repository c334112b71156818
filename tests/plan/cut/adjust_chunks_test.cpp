#include "plan/graphs.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::testing;

namespace {

/// A GPU whose nodes take `node_s`; reading back 8 MiB takes `readback_s`, a submission `submit_s`.
std::vector<device_info> slow_gpu(double readback_s, double submit_s, double node_s = 1) {
  std::vector<device_info> devices = gpus(1);
  devices[0].copies_beside_work = true;
  device_profile& p = devices[0].profile;
  p.memory_bytes_per_s = 1e18;
  p.launch_s = node_s;
  p.barrier_s = p.chunk_s = 0;
  p.submit_s = submit_s;
  p.down = {.bytes_per_s = (8 << 20) / readback_s, .latency_s = 0};
  return devices;
}

/// A chain of `length` nodes whose first one makes an output of `elements` floats; the last one makes a small output.
std::shared_ptr<const graph> early_output(int length, int64_t elements) {
  graph_builder b;
  const value_id early = b.node(plain_op, {b.input({4})}, {elements});
  value_id v = early;
  for (int i = 1; i < length; ++i)
    v = b.node(plain_op, {v}, {4});
  return b.done({early, v});
}

constexpr int64_t large = 2 << 20; // floats: 8 MiB

size_t chunk_count(const std::shared_ptr<const graph>& g, const std::vector<device_info>& devices) {
  const auto p = make_plan(g, devices, {});
  verify(*p);
  return p->chunks.size();
}

bool mentions_boundaries(const plan& p) {
  return std::any_of(p.remarks.begin(), p.remarks.end(),
                     [](const std::string& text) { return text.find("chunk boundaries") != std::string::npos; });
}

} // namespace

TEST_CASE("a chunk is cut if read-back hides behind work", "[plan][E7][C7]") {
  const auto p = make_plan(early_output(5, large), slow_gpu(3, 0.5), {});
  verify(*p);
  REQUIRE(p->chunks.size() == 2);
  CHECK(p->chunks[0].nodes.size() == 1);
  CHECK(p->chunks[0].downloads.size() == 1);
  CHECK(p->chunks[1].predecessors == std::vector<chunk_id>{0});
  CHECK(mentions_boundaries(*p));
  // Launch cost: one more submission takes longer than the time that it hides.
  CHECK(chunk_count(early_output(5, large), slow_gpu(3, 3.5)) == 1);
  // Density: too little work to hide a read-back.
  CHECK(chunk_count(early_output(5, large), slow_gpu(3, 0.5, 0.001)) == 1);
  // Read-back volume.
  CHECK(chunk_count(early_output(5, 1000), slow_gpu(3, 0)) == 1);
  // Values that stay on the GPU are not copied.
  CHECK(make_plan(early_output(5, large), slow_gpu(3, 0.5), {.values_stay = true})->chunks.size() == 1);
  // A GPU that copies on its only queue gains nothing.
  std::vector<device_info> one_queue = slow_gpu(3, 0.5);
  one_queue[0].copies_beside_work = false;
  CHECK(chunk_count(early_output(5, large), one_queue) == 1);
}

TEST_CASE("a chunk is cut if inputs for its end come beside its work", "[plan][E7][C7]") {
  const auto model = [](int64_t elements) {
    graph_builder b;
    const value_id first = b.input({4}), late = b.input({elements});
    value_id v = first;
    for (int i = 0; i < 4; ++i)
      v = b.node(plain_op, {v}, {4});
    return b.done({b.node(plain_op, {v, late}, {4})});
  };
  std::vector<device_info> devices = slow_gpu(1, 0.5);
  devices[0].profile.up = {.bytes_per_s = (8 << 20) / 3.0, .latency_s = 0};
  const auto p = make_plan(model(large), devices, {});
  verify(*p);
  REQUIRE(p->chunks.size() == 2);
  CHECK(p->chunks[0].nodes.size() == 4);
  CHECK(p->chunks[1].uploads.size() == 1);
  CHECK(chunk_count(model(1000), devices) == 1);
}

TEST_CASE("chunks of a device are joined if submissions cost more than waiting", "[plan][A14]") {
  // Eight values of the first device, each read by a node of the second.
  graph_builder b;
  const value_id in = b.input({4});
  std::vector<value_id> outputs;
  std::vector<placement_pin> pins;
  for (int i = 0; i < 8; ++i) {
    const value_id v = b.node(plain_op, {in}, {4});
    outputs.push_back(b.node(plain_op, {v}, {4}));
    pins.push_back({b.g.nodes[b.g.nodes.size() - 2].name, "cpu#0"});
    pins.push_back({b.g.nodes.back().name, "cpu#1"});
  }
  const auto g = b.done(outputs);
  std::vector<device_info> devices = cpus(2);
  for (device_info& d : devices) {
    d.profile.memory_bytes_per_s = 1e18;
    d.profile.launch_s = 1;
    d.profile.chunk_s = 0.1;
    d.profile.submit_s = 0;
  }
  const auto apart = make_plan(g, devices, {.pins = pins});
  verify(*apart);
  CHECK(apart->chunks.size() == 16);
  CHECK(!mentions_boundaries(*apart));
  // All others wait for the first device.
  devices[0].profile.submit_s = 3;
  devices[1].profile.launch_s = 0.1;
  const auto joined = make_plan(g, devices, {.pins = pins});
  verify(*joined);
  CHECK(joined->chunks.size() < 14);
  CHECK(mentions_boundaries(*joined));
  CHECK(make_plan(g, devices, {placement_policy::round_robin})->chunks.size() == 16);
}

TEST_CASE("chunks are not joined across what waits for the first and is awaited by the second", "[plan][A14][C5]") {
  graph_builder b;
  value_id v = b.input({4});
  std::vector<placement_pin> pins;
  for (int i = 0; i < 3; ++i) {
    v = b.node(plain_op, {v}, {4});
    pins.push_back({b.g.nodes.back().name, i == 1 ? "cpu#1" : "cpu#0"});
  }
  std::vector<device_info> devices = cpus(2);
  devices[0].profile.submit_s = devices[1].profile.submit_s = 100;
  const auto p = make_plan(b.done({v}), devices, {.pins = pins});
  verify(*p);
  CHECK(p->chunks.size() == 3);
}

TEST_CASE("chunks are joined for the least gain if no chunk waits longer", "[plan][A14]") {
  // The second device needs the first value that the first one makes, and the last one. A third one, if it is not so
  // (`both`), needs the first value alone.
  const auto model = [](bool both, std::vector<placement_pin>& pins) {
    graph_builder b;
    const value_id first = b.node(plain_op, {b.input({4})}, {4});
    const value_id last = b.node(plain_op, {first}, {4});
    std::vector<value_id> outputs;
    if (!both)
      outputs.push_back(b.node(plain_op, {first}, {4}));
    outputs.push_back(b.node(plain_op, {first, last}, {4}));
    for (size_t n = 0; n < b.g.nodes.size(); ++n)
      pins.push_back({b.g.nodes[n].name, n < 2 ? "cpu#0" : n + 1 < b.g.nodes.size() ? "cpu#2" : "cpu#1"});
    return b.done(outputs);
  };
  std::vector<device_info> devices = cpus(3);
  for (device_info& d : devices) {
    d.profile.memory_bytes_per_s = 1e18;
    d.profile.launch_s = 1;
    d.profile.chunk_s = 0;
    d.profile.submit_s = 0.001; // a thousandth of the time
  }
  std::vector<placement_pin> pins;
  const auto all_need_both = model(true, pins);
  const auto joined = make_plan(all_need_both, devices, {.pins = pins});
  verify(*joined);
  CHECK(joined->chunks.size() == 2);
  pins.clear();
  const auto one_needs_the_first = model(false, pins);
  const auto apart = make_plan(one_needs_the_first, devices, {.pins = pins});
  verify(*apart);
  CHECK(apart->chunks.size() == 4);
}
