// Every policy on random graphs and devices: legal, deterministic, and plans that keep their invariants.
#include "plan/place/policies.hpp"

#include "plan/estimate/gpu_support.hpp"
#include "plan/estimate/predict.hpp"
#include "plan/graphs.hpp"
#include "plan/place/placement.hpp"
#include "support/catch.hpp"
#include "support/verify_memory.hpp"

#include <random>

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using placed = std::vector<device_index>;

namespace {

using generator = std::mt19937_64;

size_t below(generator& random, size_t bound) {
  return random() % bound;
}

/// An operator that computes: 1,000 operations an element of its output.
op_cost heavy_cost(const attributes&, const call_shapes& call) {
  return {.flops = 1000 * static_cast<double>(volume(call.outputs[0]))};
}
const op_def& heavy_op = gpu_op(
    {.domain = "test", .name = "heavy", .since = 1, .inputs = {0, 255}, .infer = infer_nothing, .cost = heavy_cost},
    any_launch);

/// Layers of operators of all kinds and sizes, some with weights, each reading values of a few layers before.
std::shared_ptr<const graph> random_graph(generator& random) {
  graph_builder b;
  std::vector<value_id> values{b.input({int64_t{1} << below(random, 16)})};
  if (below(random, 2))
    values.push_back(b.input({dim::symbol("n"), 16}));
  const op_def* kinds[] = {&plain_op, &heavy_op, &heavy_op, &host_op, &in_place_op, &view_op};
  for (size_t i = 0, count = 1 + below(random, 60); i < count; ++i) {
    const auto pick = [&] { return values[values.size() - 1 - below(random, std::min<size_t>(values.size(), 6))]; };
    const op_def& def = *kinds[below(random, std::size(kinds))];
    std::vector<value_id> inputs{pick()};
    const symbolic_shape first = *b.g.values[inputs[0]].dims;
    if (&def == &view_op) {
      values.push_back(b.node(def, inputs, first));
      continue;
    }
    if (&def != &in_place_op && below(random, 3) == 0)
      inputs.push_back(
          b.g.add_constant(fmt::format("w{}", i), tensor(dtype::float32, {1 + int64_t(below(random, 999))})));
    while (below(random, 2))
      inputs.push_back(pick());
    values.push_back(
        b.node(def, inputs, &def == &in_place_op ? first : symbolic_shape{int64_t{1} << below(random, 20)}));
  }
  return b.done({values.back(), values[values.size() / 2]});
}

/// CPUs and GPUs of all speeds; one at least runs everything.
std::vector<device_info> random_devices(generator& random) {
  std::vector<device_info> devices = gpus(below(random, 4));
  for (device_info& d : devices) {
    d.profile = typical_gpu(static_cast<uint32_t>(1 + below(random, 64)), below(random, 2));
    d.profile.chunk_s = 1e-6 * static_cast<double>(below(random, 50));
  }
  devices.push_back(cpus(1)[0]);
  devices.back().profile = typical_cpu(static_cast<int>(1 + below(random, 16)));
  devices.back().fallback = devices.size() > 1 && below(random, 2);
  std::rotate(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(below(random, devices.size())),
              devices.end());
  return devices;
}

double predicted(const plan& p, const bindings& values) {
  return predict(p, expected_dims(*p.program, values)).makespan_s;
}

/// Two towers of `length` heavy nodes each, joined at the end; `elements` in each value.
std::shared_ptr<const graph> two_towers(int length, int64_t elements) {
  graph_builder b;
  const value_id in = b.input({16});
  std::vector<value_id> ends;
  for (int tower = 0; tower < 2; ++tower) {
    value_id v = in;
    for (int i = 0; i < length; ++i)
      v = b.node(heavy_op, {v}, {elements});
    ends.push_back(v);
  }
  return b.done({b.node(plain_op, ends, {1})});
}

} // namespace

TEST_CASE("every policy's plans are legal and always the same", "[plan][B3][C6]") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    generator random(seed);
    const auto g = random_graph(random);
    const auto devices = random_devices(random);
    const bindings values{{"n", 5}};
    for (const policy_row& row : policies()) {
      if (row.small_only)
        continue;
      INFO("seed " << seed << ", " << row.name);
      const plan_options options{.policy = row.policy, .expected = values};
      const auto p = make_plan(g, devices, options);
      verify(*p);
      test::verify_memory(*bind_segment(p, 0, values));
      CHECK(p->placement == make_plan(g, devices, options)->placement);
      gpu_support support(*p->program);
      for (node_id n = 0; n < static_cast<node_id>(p->placement.size()); ++n)
        if (const auto& gpu = devices[p->placement[n]].gpu)
          REQUIRE(support.obstacle(n, *gpu) == gpu_obstacle::none);
    }
  }
}

TEST_CASE("heft is never predicted slower than one device", "[plan][C6]") {
  size_t faster = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    generator random(seed);
    INFO("seed " << seed);
    const auto g = random_graph(random);
    const auto devices = random_devices(random);
    const bindings values{{"n", 5}};
    const double alone = predicted(*make_plan(g, devices, {.expected = values}), values);
    const double together =
        predicted(*make_plan(g, devices, {.policy = placement_policy::heft, .expected = values}), values);
    CHECK(together <= alone);
    faster += together < 0.99 * alone;
  }
  CHECK(faster > 200);
  std::printf("heft: predicted faster than one device on %zu of 1000 random graphs\n", faster);
}

TEST_CASE("heft spreads nodes that are worth a move, and only those", "[plan][C6][C2]") {
  std::vector<device_info> devices = gpus(2);
  for (device_info& d : devices)
    d.profile = typical_gpu(16, false);
  const plan_options heft{.policy = placement_policy::heft};
  const auto wide = make_plan(two_towers(20, 1 << 22), devices, heft);
  CHECK(predicted(*wide, {}) < 0.6 * predicted(*make_plan(two_towers(20, 1 << 22), devices, {}), {}));
  const auto tiny = make_plan(two_towers(8, 4), devices, heft);
  CHECK(tiny->placement == placed(17, 0));
  // The long way round goes to the fast device, though it comes last.
  devices[1].profile = typical_gpu(64, false);
  graph_builder b;
  const value_id in = b.input({16});
  const value_id shorter = b.node(heavy_op, {in}, {1 << 20});
  value_id longer = in;
  for (int i = 0; i < 6; ++i)
    longer = b.node(heavy_op, {longer}, {1 << 22});
  const auto mixed = make_plan(b.done({shorter, longer}), devices, heft);
  for (size_t n = 0; n < 7; ++n)
    CHECK(mixed->placement[n] == (mixed->program->nodes[n].name == "n0" ? 0 : 1));
}

TEST_CASE("dmda takes the node that is ready first and does not look ahead", "[plan][C6]") {
  std::vector<device_info> devices = gpus(2);
  for (device_info& d : devices)
    d.profile = typical_gpu(16, false);
  devices[1].profile = typical_gpu(64, false);
  graph_builder b;
  const value_id in = b.input({16});
  const value_id shorter = b.node(heavy_op, {in}, {1 << 22});
  value_id longer = in;
  for (int i = 0; i < 6; ++i)
    longer = b.node(heavy_op, {longer}, {1 << 22});
  const auto g = b.done({shorter, longer});
  // Both would rather have the fast device: dmda gives it to the first node of the graph, heft to the longer way alone.
  CHECK(place(*g, devices, {.policy = placement_policy::dmda})[0] == 1);
  CHECK(place(*g, devices, {.policy = placement_policy::heft})[0] == 0);
}

TEST_CASE("greedy-memory fills one device before the next", "[plan][B3][C2]") {
  graph_builder b;
  value_id v = b.input({64});
  for (int i = 0; i < 9; ++i)
    v = b.node(plain_op, {v, b.g.add_constant(fmt::format("w{}", i), tensor(dtype::float32, {250}))}, {64});
  const auto g = b.done({v});
  std::vector<device_info> devices = cpus(1); // the CPU is first in the list, and last to be filled
  for (const device_info& gpu : gpus(2))
    devices.push_back(gpu);
  const plan_options greedy{.policy = placement_policy::greedy_memory};
  CHECK(place(*g, devices, greedy) == placed(9, 1));
  // Each node brings 1,024 bytes of weights; 512 bytes of values are live.
  devices[1].memory_bytes = 3 * 1024 + 512;
  devices[2].memory_bytes = 4 * 1024 + 512;
  CHECK(place(*g, devices, greedy) == placed{1, 1, 1, 2, 2, 2, 2, 0, 0});
  devices[0].memory_bytes = 2 * 1024;
  CHECK_THROWS_WITH(place(*g, devices, greedy), Contains("'n8' does not fit on any of the devices") &&
                                                    Contains("'vulkan:0'") && Contains("'cpu#0'") && Contains("1024"));
  // A node that a GPU cannot run does not end the filling.
  b.node(host_op, {v}, {64});
  devices = gpus_and_fallback(1);
  b.node(plain_op, {v}, {64});
  CHECK(place(b.g, devices, greedy) == placed{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0});
}

TEST_CASE("greedy-memory ends a device where little moves to the next, if that has room", "[plan][B3][C2]") {
  graph_builder b;
  value_id v = b.input({64});
  for (int i = 0; i < 20; ++i) // every fourth value is short: nodes 3, 7, 11, 15 and 19 make it
    v = b.node(plain_op, {v, b.g.add_constant(fmt::format("w{}", i), tensor(dtype::float32, {2500}))},
               {i % 4 == 3 ? 64 : 1 << 16});
  const auto g = b.done({v});
  constexpr int64_t weight = 10240, values = 2 << 18;
  const plan_options greedy{.policy = placement_policy::greedy_memory};
  const auto on_first = [&](const std::vector<device_info>& devices) {
    const placed all = place(*g, devices, greedy);
    CHECK(std::ranges::is_sorted(all));
    return std::ranges::count(all, 0);
  };
  std::vector<device_info> devices = gpus(2);
  for (device_info& d : devices)
    d.profile = typical_gpu(16, false);
  devices[0].memory_bytes = 13 * weight + values;
  CHECK(on_first(devices) == 12);
  devices[0].memory_bytes = 15 * weight + values;
  CHECK(on_first(devices) == 15); // the nearest such value before is more than an eighth of the weights away
  devices[0].memory_bytes = 13 * weight + values;
  devices[1].memory_bytes = 7 * weight + values; // no more than it must have
  CHECK(on_first(devices) == 13);
  devices = gpus_and_fallback(1); // the CPU would take longer for a node than its values for their way
  devices[0].profile = typical_gpu(16, false);
  devices[0].memory_bytes = 13 * weight + values;
  devices[1].profile.memory_bytes_per_s = 1e9;
  CHECK(on_first(devices) == 13);
}

TEST_CASE("greedy-memory counts values that are live at one time", "[plan][B3][C2]") {
  graph_builder b;
  const value_id in = b.input({1024}); // 4 KiB, like every value
  std::vector<value_id> made;
  for (int i = 0; i < 4; ++i)
    made.push_back(b.node(plain_op, {in}, {1024}));
  value_id v = b.node(plain_op, made, {1024});
  for (int i = 0; i < 5; ++i) // a chain: two values at a time, one of them a view's source
    v = b.node(i == 2 ? view_op : plain_op, {v}, {1024});
  const auto g = b.done({v});
  std::vector<device_info> devices = gpus(2);
  devices[0].memory_bytes = 4 * 4096;
  const plan_options greedy{.policy = placement_policy::greedy_memory};
  CHECK(place(*g, devices, greedy) == placed{0, 0, 0, 1, 1, 1, 1, 1, 1, 1});
  devices[0].memory_bytes = 5 * 4096;
  CHECK(place(*g, devices, greedy) == placed(10, 0));
  devices[0].memory_bytes = 5 * 4096 - 1;
  CHECK(place(*g, devices, greedy) == placed{0, 0, 0, 1, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("greedy-memory refuses nothing while dims are guesses", "[plan][B3]") {
  graph_builder b;
  const dim batch = dim::symbol("batch");
  const value_id in = b.input({batch, 1024});
  const value_id middle = b.node(plain_op, {in}, {batch, 1024}), out = b.node(plain_op, {middle}, {batch, 1024});
  const auto g = b.done({out});
  std::vector<device_info> devices = gpus(2);
  devices[0].memory_bytes = 2 * 4096; // for a batch of one
  devices[1].memory_bytes = 4096;
  plan_options greedy{.policy = placement_policy::greedy_memory};
  CHECK_NOTHROW(place(*g, devices, greedy));
  greedy.expected = {{"batch", 1}};
  CHECK(place(*g, devices, greedy) == placed{0, 0});
  greedy.expected = {{"batch", 2}};
  CHECK_THROWS_WITH(place(*g, devices, greedy), Contains("does not fit on any of the devices"));
  greedy.expected = {};
  greedy.budgets = {4096, 4096}; // of a binding, which knows
  CHECK_THROWS_WITH(place(*g, devices, greedy), Contains("does not fit on any of the devices"));
}

TEST_CASE("unknown policies are refused with a list", "[plan][C6]") {
  for (const policy_row& row : policies()) {
    CHECK(parse_policy(row.name) == row.policy);
    CHECK(to_string(row.policy) == row.name);
  }
  CHECK_THROWS_WITH(parse_policy("fast"), Contains("single, round-robin, weighted, greedy-memory, heft"));
}
