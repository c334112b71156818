// Models larger than a device's memory.
#include "plan/bind/fit_memory.hpp"

#include "plan/graphs.hpp"
#include "support/catch.hpp"
#include "support/verify_memory.hpp"

#include <random>

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// A chain whose nodes have weights of 1,024 bytes and values of `elements` floats.
std::shared_ptr<const graph> weighted_chain(int length, const dim& elements) {
  graph_builder b;
  value_id v = b.input({elements});
  for (int i = 0; i < length; ++i)
    v = b.node(plain_op, {v, b.g.add_constant(fmt::format("w{}", i), tensor(dtype::float32, {256}))}, {elements});
  return b.done({v});
}

/// Returns how everything on one device fails; nullopt if it does not.
std::optional<memory_shortage> try_single(const std::shared_ptr<const graph>& g,
                                          const std::vector<device_info>& devices, const bindings& values) {
  try {
    bind_segment(make_plan(g, devices, {}), 0, values);
  } catch (const memory_shortage& e) {
    return e;
  }
  return std::nullopt;
}

memory_shortage shortage_of(const std::shared_ptr<const graph>& g, const std::vector<device_info>& devices,
                            const bindings& values) {
  const auto shortage = try_single(g, devices, values);
  REQUIRE(shortage);
  return *shortage;
}

} // namespace

TEST_CASE("nodes that do not fit spill to other GPUs, then to the CPU", "[plan][B2][B3][E4]") {
  std::vector<device_info> devices = gpus_and_fallback(2);
  const auto g = weighted_chain(20, dim::symbol("n"));
  const bindings values{{"n", 64}};
  devices[0].memory_bytes = 10 * 1024;
  const memory_shortage first = shortage_of(g, devices, values);
  CHECK(first.needed()[0] > 20 * 1024);
  auto p = plan_that_fits(*make_plan(g, devices, {}), values, {}, first);
  verify(*p);
  CHECK_NOTHROW(bind_segment(p, 0, values));
  CHECK(p->weight_bytes[0] >= 8 * 1024);
  CHECK(p->weight_bytes[1] > 0);
  CHECK(p->weight_bytes[2] == 0);
  REQUIRE(p->remarks.size() == 1);
  CHECK_THAT(p->remarks[0], Contains("'vulkan:0'") && Contains("'vulkan:1'") && Contains("10240 bytes allowed"));
  devices[1].memory_bytes = 5 * 1024;
  p = plan_that_fits(*make_plan(g, devices, {}), values, {}, first);
  CHECK_NOTHROW(bind_segment(p, 0, values));
  CHECK(p->weight_bytes[2] > 0);
}

TEST_CASE("a model larger than all devices together is one error with all figures", "[plan][B2][E4]") {
  std::vector<device_info> devices = gpus_and_fallback(2);
  for (device_info& d : devices)
    d.memory_bytes = 4 * 1024;
  const auto g = weighted_chain(20, 64);
  CHECK_THROWS_WITH(plan_that_fits(*make_plan(g, devices, {}), {}, {}, shortage_of(g, devices, {})),
                    Contains("does not fit the devices together") && Contains("'vulkan:0'") && Contains("'vulkan:1'") &&
                        Contains("'cpu#0'") && Contains("4096"));
  devices[0].memory_bytes = 0; // not "unlimited"
  CHECK_THROWS_AS(bind_segment(make_plan(g, devices, {}), 0, {}), memory_shortage);
}

TEST_CASE("what waves keep live at one time is found by binding", "[plan][B3][E3]") {
  // Chain by chain little is live; wave by wave all chains are. In the first segment, or in one whose dims are data.
  const bool late = GENERATE(false, true);
  graph_builder b;
  const value_id in = late ? b.data_dependent(plain_op, {b.input({4})}) : b.input({256, 4});
  const symbolic_shape dims = *b.g.values[in].dims;
  std::vector<value_id> ends;
  for (int chain = 0; chain < 8; ++chain) {
    value_id v = in;
    for (int i = 0; i < 3; ++i)
      v = b.node(plain_op, {v}, dims);
    ends.push_back(b.node(plain_op, {v}, {1}));
  }
  const auto g = b.done({b.node(plain_op, ends, {1})});
  std::vector<device_info> devices = gpus_and_fallback(1);
  devices[0].memory_bytes = 8 * 4096;
  const auto alone = make_plan(g, devices, {});
  const uint32_t last = alone->segment_count - 1;
  bindings symbols;
  for (const std::string& name : symbols_of(*alone, last))
    symbols[name] = 256;
  const auto shortage_of_last = [&](plan_options options) -> std::optional<memory_shortage> {
    options.expected = symbols;
    try {
      bind_segment(make_plan(g, devices, options), last, symbols);
    } catch (const memory_shortage& e) {
      return e;
    }
    return std::nullopt;
  };
  const auto first = shortage_of_last({});
  REQUIRE(first);
  CHECK(first->needed()[0] > 12 * 4096);
  CHECK(shortage_of_last({.policy = placement_policy::greedy_memory}));
  CHECK_NOTHROW(bind_segment(plan_that_fits(*alone, symbols, {}, *first), last, symbols));
}

TEST_CASE("spilling works wherever there is room, on random chains and limits", "[plan][B3]") {
  std::mt19937_64 random(3);
  size_t spilled = 0;
  for (int i = 0; i < 300; ++i) {
    const int length = 10 + static_cast<int>(random() % 60);
    const int64_t elements = 16 << random() % 6;
    const auto g = weighted_chain(length, elements);
    std::vector<device_info> devices = gpus_and_fallback(1 + random() % 3);
    // Room for all weights, with the live values added on every device and a little more.
    const int64_t share = (length * 1024) / static_cast<int64_t>(devices.size()) + 8 * elements * 4 + 4 * 1024;
    for (device_info& d : devices)
      d.memory_bytes = share;
    devices.back().memory_bytes *= 2;
    INFO("case " << i << ": " << length << " nodes, " << elements << " elements, " << devices.size() << " devices");
    const auto first = try_single(g, devices, {});
    if (!first)
      continue;
    const auto p = plan_that_fits(*make_plan(g, devices, {}), {}, {}, *first);
    verify(*p);
    const auto bound = bind_segment(p, 0, {});
    test::verify_memory(*bound);
    for (size_t d = 0; d < devices.size(); ++d)
      CHECK(bound->layout->memory[d].arena_bytes + bound->layout->memory[d].transfer_bytes + p->weight_bytes[d] <=
            devices[d].memory_bytes);
    ++spilled;
  }
  CHECK(spilled > 150);
}

TEST_CASE("every segment whose dims are known fits, beside memory that is taken", "[plan][B3][D3]") {
  // Little before the data-dependent dim, a chain with weights after it.
  graph_builder b;
  value_id v = b.data_dependent(plain_op, {b.input({4})});
  const dim rows = (*b.g.values[v].dims)[0];
  for (int i = 0; i < 10; ++i)
    v = b.node(plain_op, {v, b.g.add_constant(fmt::format("w{}", i), tensor(dtype::float32, {256}))}, {rows, 4});
  const auto g = b.done({v});
  std::vector<device_info> devices = gpus_and_fallback(2);
  devices[0].memory_bytes = devices[1].memory_bytes = 20 * 1024;
  const auto alone = make_plan(g, devices, {});
  REQUIRE(alone->segment_count == 2);
  const std::string symbol = symbols_of(*alone, 1).at(0);
  const auto shortage_for = [&](int64_t size) -> std::optional<memory_shortage> {
    bind_segment(alone, 0, {});
    try {
      bind_segment(alone, 1, {{symbol, size}});
    } catch (const memory_shortage& e) {
      return e;
    }
    return std::nullopt;
  };
  REQUIRE_FALSE(shortage_for(64));
  const auto first = shortage_for(512); // 8 KiB for each value
  REQUIRE(first);
  const bindings symbols{{symbol, 512}};
  const auto p = plan_that_fits(*alone, symbols, {}, *first);
  verify(*p);
  CHECK_NOTHROW(bind_segment(p, 1, symbols));
  CHECK(p->weight_bytes[0] > 0);
  CHECK(p->weight_bytes[0] < 10 * 1024);
  CHECK(p->weight_bytes[1] > 0);
  const std::vector<int64_t> taken{18 * 1024, 0, 0};
  CHECK_THROWS_WITH(check_memory(*bind_segment(alone, 1, {{symbol, 64}})->layout, taken),
                    Contains("'vulkan:0'") && Contains("the graph around it 18432"));
  const auto beside = plan_that_fits(*alone, symbols, taken, *first);
  const auto bound = bind_segment(beside, 1, symbols);
  CHECK(bytes_needed(*bound->layout, 0) <= 2 * 1024);
  CHECK(bytes_needed(*bound->layout, 1) > 2 * 1024);
  CHECK(beside->weight_bytes[2] > 0);
}
