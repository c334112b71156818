// A deep model over many devices, run: 16 real devices, 1,000 layers, 50 stages.
#include "strategy/replica_sets.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/small_models.hpp"

#include <iostream>
#include <set>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t width = 32;

/// `count` layers x ← x + tanh(x · w + b) / 50, each with other weights: every layer changes the answer.
graph deep_model(size_t count) {
  graph_builder b;
  const dim batch = dim::symbol("batch");
  value_id v = b.input("x", {batch, width});
  const value_id part = b.scalar(0.02f);
  for (size_t i = 0; i < count; ++i) {
    const auto seed = static_cast<uint32_t>(2 * i);
    const value_id weight = b.constant(fmt::format("w{}", i), random_tensor({width, width}, seed));
    const value_id bias = b.constant(fmt::format("b{}", i), random_tensor({width}, seed + 1));
    const value_id inner = b.op("Tanh", {b.op("Add", {b.op("MatMul", {v, weight}), bias})});
    v = b.op("Add", {v, b.op("Mul", {inner, part})}, {}, i + 1 == count ? "y" : "");
  }
  b.output(v);
  return b.g;
}

named_tensors rows_of(int64_t count) {
  return {{"x", random_tensor({count, width}, 77)}};
}

std::vector<float> answer_of(const session& s, const named_tensors& x) {
  return values_of(s.run(x).outputs.at("y"));
}

std::vector<float> answer_of_one_cpu(const graph& model, const named_tensors& x) {
  engine one({.devices = {"cpu"}});
  return answer_of(one.load(model), x);
}

void check_close(const std::vector<float>& got, const std::vector<float>& want) {
  REQUIRE(got.size() == want.size());
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i)
    largest = std::max(largest, std::abs(double{got[i]} - want[i]));
  CHECK(largest < 1e-3); // of values of about 1
}

std::set<device_index> devices_used(const plan& p) {
  return {p.placement.begin(), p.placement.end()};
}

} // namespace

TEST_CASE("16 devices run a model of 1,000 layers, as one does", "[actors][vulkan][C12][C2][C3]") {
  const graph model = deep_model(1000);
  const named_tensors x = rows_of(32);
  const std::vector<float> expected = answer_of_one_cpu(model, x);
  engine e = make_engine({.devices = {"cpu*8", "vulkan:0*8"}}, {});
  REQUIRE(e.devices().size() == 16);
  for (const strategy how : {strategy::pipeline, strategy::model_parallel}) {
    const session s = e.load(model, {.strategy = how, .stream = {.micro_batch = 2}});
    const auto p = plan_of(s, rows_of(2));
    const session_stats stats = s.stats();
    std::cout << fmt::format(
        "{}: {} nodes over {} of 16 devices in {} chunks; rewritten in {:.0f} ms, planned in {:.0f} ms\n",
        to_string(how), p->program->nodes.size(), devices_used(*p).size(), p->chunks.size(), stats.rewrite_ms,
        stats.plan_ms);
    CHECK(stats.plan_ms < 20'000); // far above what an optimised build needs
    check_close(answer_of(s, x), expected);
    CHECK(s.queue_stats().replicas.at(0).devices.size() == 16);
    CHECK(s.queue_stats().replicas.at(0).pieces == 16);
  }
  // However little it pays on this machine, all 16 take part.
  for (const placement_policy policy : {placement_policy::weighted, placement_policy::round_robin}) {
    const session s =
        e.load(model, {.policy = policy, .strategy = strategy::model_parallel, .stream = {.micro_batch = 16}});
    CHECK(devices_used(*plan_of(s, rows_of(16))).size() == 16);
    check_close(answer_of(s, x), expected);
  }
}

TEST_CASE("micro-batches flow through 50 stages", "[actors][C12][C3]") {
  const graph model = deep_model(1000);
  const named_tensors x = rows_of(64);
  const std::vector<float> expected = answer_of_one_cpu(model, x);
  engine e({.devices = {"cpu*50"}});
  for (const pipeline_schedule schedule : {pipeline_schedule::one_in_one_out, pipeline_schedule::fill_drain}) {
    const session s =
        e.load(model, {.strategy = strategy::pipeline, .stream = {.micro_batch = 1, .schedule = schedule}});
    CHECK(devices_used(*plan_of(s, rows_of(1))).size() == 50);
    check_close(answer_of(s, x), expected);
    CHECK(s.queue_stats().replicas.at(0).pieces == 64);
  }
}
