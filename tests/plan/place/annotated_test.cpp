#include "plan/place/annotated.hpp"

#include "plan/graphs.hpp"
#include "plan/place/policies.hpp"
#include "plan/show/annotate.hpp"
#include "support/catch.hpp"

#include <fmt/ranges.h>

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// A chain of five nodes 'n0' … 'n4'; 'n3' cannot run on GPUs.
graph chain() {
  graph_builder b;
  value_id v = b.input("x", {4});
  for (int i = 0; i < 5; ++i)
    v = b.node(i == 3 ? host_op : plain_op, {v}, {4});
  graph g = *b.done({v});
  for (size_t n = 0; n < g.nodes.size(); ++n)
    g.nodes[n].name = fmt::format("n{}", n);
  return g;
}

std::shared_ptr<const graph> annotated(graph g, device_configuration c, hash128 key = {1, 2}) {
  g.annotations = std::make_shared<const model_annotations>(model_annotations{{std::move(c)}, key});
  return std::make_shared<const graph>(std::move(g));
}

std::string devices_of(const plan& p) {
  std::string names;
  for (size_t n = 0; n < p.program->nodes.size(); ++n)
    if (!p.inserted[n])
      names += fmt::format("{} ", p.devices[p.placement[n]].name);
  return names;
}

std::string remarks_of(const plan& p) {
  return fmt::format("{}", fmt::join(p.remarks, "; "));
}

} // namespace

TEST_CASE("nodes run where the file says, and others beside them", "[plan][annotations]") {
  device_configuration c{.name = "pair", .count = 2};
  c.add({.device = 1}, "n1", {});
  c.add({.stage = 0}, "n4", {});
  const auto p = make_plan(annotated(chain(), c), cpus(2), {});
  CHECK(devices_of(*p) == "cpu#1 cpu#1 cpu#1 cpu#1 cpu#0 ");
  CHECK_THAT(remarks_of(*p), Contains("placed as the file's configuration 'pair' says"));
}

TEST_CASE("a configuration means its devices by name, else by number", "[plan][annotations]") {
  device_configuration c{.name = "pair", .count = 2, .devices = {"cpu#2", "cpu#0"}};
  c.add({.device = 0}, "n0", {});
  c.add({.device = 1}, "n4", {});
  CHECK(devices_of(*make_plan(annotated(chain(), c), cpus(3), {})) == "cpu#2 cpu#2 cpu#2 cpu#2 cpu#0 ");
  c.devices = {"CUDA:0", "CUDA:1"};
  CHECK(devices_of(*make_plan(annotated(chain(), c), cpus(3), {})) == "cpu#0 cpu#0 cpu#0 cpu#0 cpu#1 ");
}

TEST_CASE("what cannot be followed is a remark", "[plan][annotations]") {
  device_configuration c{.name = "three", .count = 3};
  c.add({.device = 2}, "n0", {});
  const auto p = make_plan(annotated(chain(), c), cpus(2), {});
  CHECK_THAT(remarks_of(*p), Contains("'three' is for 3 devices, and 2 can be used: it is not followed"));
  CHECK(devices_of(*p) == "cpu#0 cpu#0 cpu#0 cpu#0 cpu#0 ");

  device_configuration pair{.name = "pair", .count = 2};
  pair.add({.device = 1}, "n3", {});
  pair.add({.refused = "device groups"}, "n0", {});
  const auto q = make_plan(annotated(chain(), pair), gpus_and_fallback(2), {});
  CHECK_THAT(remarks_of(*q), Contains("on other devices than the file says: test.host 'n3' (cpu#0)") &&
                                 Contains("not supported: test.plain 'n0' (device groups)"));
}

TEST_CASE("a caller's pins come before the file's annotations", "[plan][annotations]") {
  device_configuration c{.name = "pair", .count = 2};
  c.add({.device = 1}, "n0", {});
  c.add({.device = 1}, "n1", {});
  const auto p = make_plan(annotated(chain(), c), cpus(2), {.pins = {{"n1", "cpu#0"}}});
  CHECK(devices_of(*p) == "cpu#1 cpu#0 cpu#0 cpu#0 cpu#0 ");
}

TEST_CASE("annotations are part of a plan's key", "[plan][annotations]") {
  device_configuration c{.name = "pair", .count = 2};
  c.add({.device = 1}, "n0", {});
  const auto bare = std::make_shared<const graph>(chain());
  const auto key_of = [](const std::shared_ptr<const graph>& g) { return make_plan(g, cpus(2), {})->key; };
  CHECK_FALSE(key_of(annotated(chain(), c)) == key_of(bare));
  CHECK_FALSE(key_of(annotated(chain(), c)) == key_of(annotated(chain(), c, {3, 4})));
}

TEST_CASE("a plan of any policy is found again from its own annotations", "[plan][annotations]") {
  for (const placement_policy policy :
       {placement_policy::single, placement_policy::round_robin, placement_policy::weighted, placement_policy::pipeline,
        placement_policy::heft, placement_policy::greedy_memory}) {
    const auto p = make_plan(std::make_shared<const graph>(chain()), cpus(3), {.policy = policy});
    const auto q = make_plan(annotated(chain(), annotations_of(*p)), cpus(3), {});
    INFO(row_of(policy).name);
    CHECK(devices_of(*q) == devices_of(*p));
  }
}
