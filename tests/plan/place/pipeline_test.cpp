// The policy `pipeline`: where it cuts, and why.
#include "ops/op.hpp"
#include "plan/graphs.hpp"
#include "plan/place/placement.hpp"
#include "plan/show/print.hpp"
#include "support/catch.hpp"

#include <ctime>

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using placed = std::vector<device_index>;

namespace {

/// A gigaflop, and nothing to read: a hundredth of a second on the devices below.
op_cost stage_work(const attributes&, const call_shapes&) {
  return {.flops = 1e9};
}
const op_def& work_op = gpu_op(
    {.domain = "test", .name = "work", .since = 1, .inputs = {1, 255}, .infer = infer_nothing, .cost = stage_work},
    any_launch);
const op_def host_work_op{
    .domain = "test", .name = "host_work", .since = 1, .inputs = {1, 255}, .infer = infer_nothing, .cost = stage_work};

const plan_options pipeline{.policy = placement_policy::pipeline};

/// One node after the other; each makes as many elements as `sizes` say, from `weight` elements of its own.
graph chain_of(const std::vector<int64_t>& sizes, int64_t weight = 0, const op_def& op = work_op) {
  graph_builder b;
  value_id v = b.input({1});
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<value_id> inputs{v};
    if (weight > 0)
      inputs.push_back(b.g.add_constant(fmt::format("w{}", i), tensor(dtype::float32, {weight})));
    v = b.node(op, inputs, {sizes[i]});
  }
  return *b.done({v});
}

std::vector<int64_t> same(size_t count, int64_t size = 1) {
  return std::vector<int64_t>(count, size);
}

/// GPUs of these GFLOP/s, with free links.
std::vector<device_info> gpus_of(const std::vector<double>& gflops) {
  std::vector<device_info> devices = gpus(gflops.size());
  for (size_t i = 0; i < devices.size(); ++i)
    devices[i].profile.flops_per_s.fill(gflops[i] * 1e9);
  return devices;
}

void slow_links(std::vector<device_info>& devices, double bytes_per_s) {
  for (device_info& d : devices)
    d.profile.up.bytes_per_s = d.profile.down.bytes_per_s = bytes_per_s;
}

/// Returns the devices in the order of their stages, checking that each has one only.
std::vector<device_index> stages_of(const placed& p) {
  std::vector<device_index> stages;
  for (device_index d : p)
    if (stages.empty() || stages.back() != d)
      stages.push_back(d);
  CHECK(std::is_sorted(stages.begin(), stages.end()));
  CHECK(std::adjacent_find(stages.begin(), stages.end()) == stages.end());
  return stages;
}

} // namespace

TEST_CASE("a pipeline's stages are equal on equal devices and fit uneven ones", "[plan][C3]") {
  const graph g = chain_of(same(12));
  CHECK(place(g, gpus_of({100, 100, 100}), pipeline) == placed{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
  CHECK(place(g, gpus_of({100, 200, 100}), pipeline) == placed{0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2});
  // The order of devices stays; one that would only slow things down has no stage.
  CHECK(place(g, gpus_of({200, 1, 100}), pipeline) == placed{0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2});
  CHECK(place(g, gpus_of({1, 100, 1}), pipeline) == placed(12, 1));
  CHECK(place(g, gpus_of({100}), pipeline) == placed(12, 0));
  // One node takes as long as it takes: more stages than two would not help.
  CHECK(stages_of(place(chain_of(same(2)), gpus_of({100, 100, 100, 100}), pipeline)).size() == 2);
  CHECK(place(chain_of(same(4)), gpus_of({100, 100, 100}), pipeline) == placed{0, 0, 1, 1});
}

TEST_CASE("a slow link moves a pipeline's cut to where little crosses", "[plan][C3]") {
  std::vector<device_info> devices = gpus_of({100, 100});
  const graph g = chain_of({1000, 1000, 1000, 1, 1000, 1000, 1000, 1000, 1000, 1});
  CHECK(place(g, devices, pipeline) == placed{0, 0, 0, 0, 0, 1, 1, 1, 1, 1});
  slow_links(devices, 1e5); // 40 ms for 4,000 bytes, as long as four nodes
  CHECK(place(g, devices, pipeline) == placed{0, 0, 0, 0, 1, 1, 1, 1, 1, 1});
  std::vector<int64_t> large = same(9, 1000);
  large.push_back(1);
  slow_links(devices, 1e4); // 0.4 s for whatever crosses, longer than all nodes
  CHECK(place(chain_of(large), devices, pipeline) == placed(10, 0));
}

TEST_CASE("a pipeline over hosts counts the network where stages change hosts", "[plan][C3][C11]") {
  std::vector<device_info> devices = gpus_of({100, 100, 100});
  for (size_t i : {1, 2}) {
    devices[i].host = "far";
    devices[i].network_in = devices[i].network_out = {.bytes_per_s = 1e4, .latency_s = 0};
  }
  // 0.4 s to "far" for all but one value; the two devices there exchange theirs freely.
  CHECK(place(chain_of({1000, 1000, 1, 1000, 1000, 1000, 1000, 1000, 1}), devices, pipeline) ==
        placed{0, 0, 0, 1, 1, 1, 2, 2, 2});
  devices[2].host = "near";
  CHECK(stages_of(place(chain_of({1000, 1000, 1, 1000, 1000, 1000, 1000, 1000, 1}), devices, pipeline)).size() == 2);
}

TEST_CASE("memory moves a pipeline's cuts", "[plan][C3][B3]") {
  const graph g = chain_of(same(8, 64), 256); // each brings 1,024 bytes of weights; 512 bytes of values are live
  std::vector<device_info> devices = gpus_of({100, 100});
  CHECK(place(g, devices, pipeline) == placed{0, 0, 0, 0, 1, 1, 1, 1});
  devices[0].memory_bytes = 2 * 1024 + 512;
  CHECK(place(g, devices, pipeline) == placed{0, 0, 1, 1, 1, 1, 1, 1});
  devices[0].memory_bytes = 1 << 20;
  devices[1].memory_bytes = 3 * 1024 + 512;
  CHECK(place(g, devices, pipeline) == placed{0, 0, 0, 0, 0, 1, 1, 1});
  // If no placement fits, it is balanced, and the binding says how much memory is missing.
  devices[0].memory_bytes = 1024;
  CHECK(place(g, devices, pipeline) == placed{0, 0, 0, 0, 1, 1, 1, 1});
}

TEST_CASE("weights that nodes of a stage share count once", "[plan][C3][B3]") {
  graph_builder b;
  value_id v = b.input({1});
  const value_id shared = b.g.add_constant("w", tensor(dtype::float32, {256}));
  for (int i = 0; i < 8; ++i)
    v = b.node(work_op, {v, shared}, {64});
  std::vector<device_info> devices = gpus_of({100, 100});
  for (device_info& d : devices)
    d.memory_bytes = 1024 + 512;
  devices[0].profile.flops_per_s.fill(3e11);
  CHECK(place(*b.done({v}), devices, pipeline) == placed{0, 0, 0, 0, 0, 0, 1, 1});
}

TEST_CASE("pins hold in a pipeline and count for their device", "[plan][C3]") {
  const graph g = chain_of(same(8));
  plan_options options = pipeline;
  options.pins = {{"n0", "vulkan:1"}, {"n1", "vulkan:1"}};
  CHECK(place(g, gpus_of({100, 100}), options) == placed{1, 1, 0, 0, 0, 0, 1, 1});
}

TEST_CASE("nodes that a pipeline's device cannot run go to one that can", "[plan][C3]") {
  graph_builder b;
  value_id v = b.input({1});
  for (int i = 0; i < 9; ++i)
    v = b.node(i == 1 ? host_work_op : work_op, {v}, {1});
  const auto g = b.done({v});
  std::vector<device_info> devices = gpus_of({100, 100});
  devices.push_back(cpus(1)[0]);
  devices[2].fallback = true; // it takes that node alone, and no stage waits for it
  CHECK(place(*g, devices, pipeline) == placed{0, 2, 0, 0, 0, 1, 1, 1, 1});
  devices[2].fallback = false;
  devices[2].profile.flops_per_s.fill(5e10); // half as fast: the first stage waits 20 ms for that node
  CHECK(place(*g, devices, pipeline) == placed{0, 2, 0, 1, 1, 1, 1, 2, 2});
}

TEST_CASE("1,000 layers become stages on 16 and on 50 devices at once", "[plan][C3][C12]") {
  const graph g = chain_of(same(3000, 64), 16);
  for (const size_t count : {16, 50}) {
    const std::clock_t begin = std::clock();
    const placed p = place(g, gpus_of(std::vector<double>(count, 100)), pipeline);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::printf("pipeline: 3000 nodes on %zu devices: %.0f ms\n", count, seconds * 1e3);
    CHECK(seconds < 10); // far above what an optimised build needs
    CHECK(stages_of(p).size() == count);
    for (device_index d = 0; d < count; ++d)
      CHECK(static_cast<size_t>(std::count(p.begin(), p.end(), d)) <= (3000 + count - 1) / count);
  }
  // In a whole plan, each stage is a chunk that waits for the one before.
  const auto p = make_plan(std::make_shared<const graph>(g), gpus_of(std::vector<double>(16, 100)), pipeline);
  REQUIRE(p->chunks.size() == 16);
  for (chunk_id c = 1; c < 16; ++c)
    CHECK(p->chunks[c].predecessors == std::vector<chunk_id>{c - 1});
}

TEST_CASE("a pipeline's plan shows the times of its stages", "[plan][C3]") {
  const auto p = make_plan(std::make_shared<const graph>(chain_of(same(9))), gpus_of({100, 200, 10}), pipeline);
  const auto bound = bind_segment(p, 0, {});
  CHECK_THAT(to_text(*p, bound.get()),
             Contains("stage 1 of 2, vulkan:0: 30.0") && Contains("\nstage 2 of 2, vulkan:1: 30.0") &&
                 Contains("ms; the slowest stage bounds the throughput at 33.3 runs/s\nplaced:"));
}
