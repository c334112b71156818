// Time of planning and binding as graphs grow; measured in processor time, so that other work on the machine counts
// little.
#include "plan/cut/ready_set.hpp"
#include "plan/graphs.hpp"
#include "plan/place/policies.hpp"
#include "support/catch.hpp"

#include <ctime>
#include <iostream>
#include <random>

using namespace troupe;
using namespace troupe::testing;

namespace {

template <class F>
double milliseconds(F&& f) {
  const std::clock_t begin = std::clock();
  f();
  return 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// Transformer-like: mostly chains, with weights, views, in-place nodes, residuals and some long edges.
std::shared_ptr<const graph> large_graph(size_t nodes) {
  graph_builder b;
  std::mt19937 random(5);
  const dim batch = dim::symbol("batch"), seq = dim::symbol("seq");
  std::vector<value_id> values{b.input({batch, seq, 64})};
  const value_id weight = b.g.add_constant("w", tensor(dtype::float32, {64, 64}));
  for (size_t i = 0; i < nodes; ++i) {
    const value_id last = values.back();
    const value_id other = values[values.size() - 1 - random() % std::min<size_t>(values.size(), i % 50 ? 12 : 4000)];
    switch (i % 4) {
      case 0: values.push_back(b.node(plain_op, {last, weight}, {batch, seq, 64})); break;
      case 1: values.push_back(b.node(in_place_op, {last, other}, {batch, seq, 64})); break;
      case 2: values.push_back(b.node(view_op, {last}, {batch * seq, 64})); break;
      default: values.push_back(b.node(plain_op, {last, other}, {batch, seq, 8 + 8 * int64_t(random() % 16)}));
    }
  }
  return b.done({values.back()});
}

} // namespace

TEST_CASE("planning time grows with the graph, not with its square", "[plan][slow][C12]") {
  for (const size_t nodes : {1000, 10'000, 100'000}) {
    const auto g = large_graph(nodes);
    for (const size_t devices : {0, 1, 4}) { // none: a GPU
      const auto policy = devices <= 1 ? placement_policy::single : placement_policy::round_robin;
      std::shared_ptr<const plan> p;
      const double planning =
          milliseconds([&] { p = make_plan(g, devices ? cpus(devices) : gpus_and_fallback(1), {policy}); });
      const bindings values{{"batch", 2}, {"seq", 100}};
      bound_plan_ptr bound;
      double binding = 1e9;
      for (int i = 0; i < 5; ++i)
        binding = std::min(binding, milliseconds([&] { bound = bind_segment(p, 0, values); }));
      std::cout << fmt::format(
          "{} nodes, {} devices, {} chunks: plan {:.2f} ms, bind {:.3f} ms, arena {} of {} bytes\n", nodes, devices,
          p->chunks.size(), planning, binding, bound->layout->memory[0].arena_bytes,
          bound->layout->memory[0].bytes_without_reuse);
      // Far above what an optimised build needs; a quadratic step would take minutes.
      CHECK(planning < 30'000);
      CHECK(binding < 5'000);
    }
  }
}

TEST_CASE("every policy plans 100,000 nodes in a moment", "[plan][slow][C6][C12]") {
  const auto g = large_graph(100'000);
  std::vector<device_info> devices = gpus_and_fallback(4);
  for (device_info& d : devices)
    d.profile = d.gpu ? typical_gpu(64, true) : typical_cpu(8);
  for (const policy_row& row : policies()) {
    if (row.small_only)
      continue;
    const plan_options options{.policy = row.policy, .expected = {{"batch", 2}, {"seq", 100}}};
    std::shared_ptr<const plan> p;
    const double planning = milliseconds([&] { p = make_plan(g, devices, options); });
    std::cout << fmt::format("{}: 100000 nodes on 4 GPUs, {} chunks: plan {:.0f} ms\n", row.name, p->chunks.size(),
                             planning);
    CHECK(planning < 30'000);
  }
}
