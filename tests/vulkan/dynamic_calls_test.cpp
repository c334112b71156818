// Where a binding's parameters are. No GPU is needed.
#include "launch/launch_table.hpp"
#include "plan/bind/layout_buckets.hpp"
#include "plan/plan.hpp"
#include "support/catch.hpp"
#include "support/fabricated_gpu.hpp"
#include "support/small_models.hpp"
#include "vulkan/dynamic_calls.hpp"

#include <fmt/format.h>

using namespace troupe;
using namespace troupe::test;

TEST_CASE("layers that launch the same share their parameters", "[vulkan][launch]") {
  device_info gpu{.name = "gpu", .kind = device_kind::vulkan, .memory_bytes = int64_t{1} << 40, .host_memory = false};
  gpu.gpu = testing::h100_like();
  graph_builder b;
  for (const int64_t width : {3, 5}) {
    value_id v = b.input(fmt::format("x{}", width), {dim::symbol("n"), dim(width)});
    for (int layer = 0; layer < 3; ++layer)
      v = b.op("Relu", {v});
    b.output(v);
  }
  const auto p = make_plan(inferred_program(b.g), {gpu}, {});
  layout_buckets layouts(4);
  const auto bound = [&](int64_t n) { return layouts.bind(p, 0, {{"n", n}}); };
  bound(999); // of exact dims: those that change later get room
  const bound_plan_ptr one = bound(1000), next = bound(1001);
  REQUIRE(one->layout == next->layout);
  const vulkan::dynamic_calls calls(*one->layout, 0);
  for (node_id n = 0; n < std::ssize(p->program->nodes); ++n)
    REQUIRE(calls.class_of(n) != vulkan::dynamic_calls::none);
  REQUIRE(p->program->nodes.size() == 6);
  REQUIRE(calls.class_count() == 2);
  const std::vector<launch_list> choices = calls.choose(*one, {}), others = calls.choose(*next, {});
  REQUIRE(vulkan::runs_on(choices, others));
  const vulkan::parameter_table table(calls, *one->layout, choices);
  REQUIRE(others[0].launches.at(0).params != others[1].launches.at(0).params);
  CHECK(table.block_at(0, 0) != table.block_at(1, 0));
  CHECK(table.groups_at(0, 0) != table.groups_at(1, 0));
  const std::vector<std::byte> bytes = table.fill(*next, others);
  REQUIRE(std::ssize(bytes) == table.bytes());
  for (const uint32_t c : {0u, 1u}) {
    const launch& l = others[c].launches.at(0);
    CHECK_FALSE(l.fixed_groups);
    std::array<uint32_t, 3> groups{};
    std::memcpy(groups.data(), bytes.data() + table.groups_at(c, 0), sizeof(groups));
    CHECK(groups == l.groups);
    std::vector<uint32_t> params(l.params.size());
    std::memcpy(params.data(), bytes.data() + table.block_at(c, 0), params.size() * sizeof(uint32_t));
    CHECK(params == l.params);
  }
}
