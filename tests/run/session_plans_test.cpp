// Which plans a session keeps, and when it finds them again.
#include "loader/models.hpp"
#include "plan/place/policies.hpp"
#include "plan/show/print.hpp"
#include "run/session_plans.hpp"
#include "support/catch.hpp"
#include "support/deterministic_system.hpp"
#include "support/find_or_make.hpp"
#include "support/graph_builder.hpp"
#include "support/small_models.hpp"

#include <algorithm>
#include <set>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t gib = int64_t{1} << 30;

std::vector<device_info> two_devices(int64_t bytes = 16 * gib) {
  std::vector<device_info> infos;
  for (const char* name : {"a", "b"})
    infos.push_back({.name = name, .kind = device_kind::null, .memory_bytes = bytes});
  return infos;
}

std::vector<device_info> two_devices_of(int64_t first, int64_t second) {
  std::vector<device_info> infos = two_devices(second);
  infos[0].memory_bytes = first;
  return infos;
}

/// `count` products of x, [n, 64], one after the other, each with 16 KiB of weights.
graph layers(int count) {
  graph_builder b;
  value_id v = b.input("x", {dim::symbol("n"), 64});
  for (int i = 0; i < count; ++i) {
    const std::vector<float> weights(64 * 64, static_cast<float>(i));
    v = b.op("MatMul", {v, b.constant(fmt::format("w{}", i), tensor::of<float>({64, 64}, weights))});
  }
  b.output(v);
  return b.g;
}

session_plans plans_of(graph g, const session_options& options = {}, std::vector<device_info> devices = two_devices()) {
  return {make_model(std::move(g), options, 0), std::move(devices)};
}

prepared_run prepare(session_plans& plans, shape dims) {
  const named_tensors inputs{{"x", tensor(dtype::float32, std::move(dims))}};
  return find_or_make([&](const plan_outcome& made) { return plans.prepare({inputs, {}}, made); });
}

graph batched_chain() {
  return chain(4, {dim::symbol("n"), 3});
}

/// x of any rank: each rank is rewritten and planned on its own.
graph rankless_chain() {
  graph g = chain(2);
  g.values[g.inputs[0]].dims = std::nullopt;
  return g;
}

shape ones(size_t rank) {
  return shape(rank, 1);
}

} // namespace

TEST_CASE("a run's plan is looked up, and counted, by all that plans depend on", "[actors][E6]") {
  session_plans plans = plans_of(batched_chain());
  plans.prepare_ahead();
  CHECK(plans.stats().plans.misses == 1);
  const planned_model_ptr first = prepare(plans, {2, 3}).source;
  const prepared_run second = prepare(plans, {5, 3});
  CHECK(second.source == first);
  CHECK_FALSE(second.cached); // the plan was there, bound to other dims
  CHECK(prepare(plans, {2, 3}).cached);
  CHECK(plans.stats().plans.hits == 3);
  CHECK(plans.stats().plans.misses == 1);
  CHECK(plans.stats().bound_plans.hits == 1);
  CHECK(plans.stats().bound_plans.misses == 2);
}

TEST_CASE("nothing is planned ahead for devices that are lost", "[actors][E6][C11]") {
  session_plans plans(make_model(batched_chain(), {}, 0), two_devices(), {0, 1}, {});
  const session_plans::ahead made = plans.prepare_ahead();
  CHECK(made.program);
  CHECK_FALSE(made.planned);
  plans.add_device({.name = "c", .kind = device_kind::null, .memory_bytes = gib});
  CHECK(prepare(plans, {2, 3}).source);
}

TEST_CASE("memory that comes back, or nearly, finds the plan that was made for it", "[actors][E6][A10]") {
  for (const policy_row& row : policies()) {
    INFO(row.name);
    session_plans plans = plans_of(batched_chain(), {.policy = row.policy});
    const planned_model_ptr claimed = prepare(plans, {2, 3}).source;
    plans.lower_memory(0, 2'000'000'000);
    const prepared_run lowered = prepare(plans, {2, 3});
    CHECK(lowered.source != claimed);
    CHECK_FALSE(lowered.cached);
    CHECK(plans.stats().plans.misses == 2);
    plans.restore_memory();
    CHECK(prepare(plans, {4, 3}).source == claimed); // whatever the dims of the run that asks
    plans.lower_memory(0, 2'000'300'000);
    CHECK(prepare(plans, {2, 3}).source == lowered.source);
    CHECK(plans.stats().plans.misses == 2);
    plans.lower_memory(0, 2'000'300'000);
    CHECK(prepare(plans, {2, 3}).source != lowered.source); // an eighth less is not nearly the same
    CHECK(plans.stats().plans.misses == 3);
    CHECK(plans.stats().plans.evictions == 0);
  }
}

TEST_CASE("a plan for other devices, or other outputs, is another plan", "[actors][E6][A10]") {
  session_plans plans = plans_of(batched_chain(), {.policy = placement_policy::round_robin, .fuse = false});
  const prepared_run both = prepare(plans, {2, 3});
  plans.remove_device(0);
  const prepared_run left = prepare(plans, {2, 3});
  CHECK(left.source->devices == std::vector<size_t>{1});
  CHECK(plans.stats().plans.misses == 2);
  const auto gone = plans.bound().take_evicted();
  CHECK(gone == std::vector<uint64_t>{both.bound->id}); // the bound plan held memory of the device
  graph g = fan_out(2, 1);
  const std::string output = g.values[g.outputs[0]].name;
  session_plans all = plans_of(g), one = plans_of(g, {.outputs = {output}});
  CHECK(prepare(all, {4}).source->compiled->key != prepare(one, {4}).source->compiled->key);
}

TEST_CASE("the plan that spilled is found again with the memory that it was made for", "[actors][E6][B3]") {
  std::vector<device_info> devices = two_devices();
  devices[0].memory_bytes = 1 << 20;
  session_plans plans = plans_of(chain(6, {dim::symbol("n"), 1024}), {.fuse = false}, std::move(devices));
  const prepared_run fits = prepare(plans, {1, 1024});
  const prepared_run spilled = prepare(plans, {127, 1024});
  REQUIRE(spilled.source != fits.source);
  REQUIRE_FALSE(spilled.source->compiled->remarks.empty());
  plans.lower_memory(0, 1000 << 10);
  CHECK(prepare(plans, {1, 1024}).source != fits.source);
  plans.restore_memory();
  CHECK(prepare(plans, {127, 1024}).source == spilled.source);
  CHECK(prepare(plans, {1, 1024}).source == fits.source);
  CHECK(plans.stats().plans.misses == 2);
}

TEST_CASE("a plan that spilled serves others, and what has outgrown it is planned with room", "[actors][E6][B3]") {
  session_plans plans = plans_of(layers(24), {.fuse = false}, two_devices_of(256 << 10, 16 * gib));
  const prepared_run first = prepare(plans, {2, 64});
  REQUIRE_FALSE(first.source->compiled->remarks.empty());
  CHECK(prepare(plans, {1, 64}).source == first.source); // its weights alone are too large for a device
  CHECK(prepare(plans, {3, 64}).source == first.source);
  std::set<planned_model_ptr> made;
  int foreseen = 0;
  for (int64_t n = 4; n <= 100; ++n) {
    const prepared_run step = prepare(plans, {n, 64});
    made.insert(step.source);
    const auto next = plans.likely_next(step);
    foreseen += next && next->source == step.source && plans.find_again(*next);
  }
  CHECK(made.size() <= 8); // instead of 97
  CHECK(foreseen >= 80);
}

TEST_CASE("a plan outlives its specialisation, and takes its bound plans along", "[actors][E6]") {
  session_plans plans = plans_of(rankless_chain());
  std::vector<uint64_t> bound;
  for (size_t rank = 1; rank <= 18; ++rank)
    bound.push_back(prepare(plans, ones(rank)).bound->id);
  CHECK(plans.stats().plans.misses == 18);
  CHECK(plans.stats().plans.evictions == 2);
  CHECK(plans.bound().take_evicted() == std::vector<uint64_t>{bound[0], bound[1]});
  CHECK(prepare(plans, ones(3)).bound->id == bound[2]); // rewritten anew into the same program
  CHECK(plans.stats().plans.hits == 1);
  CHECK(prepare(plans, ones(1)).bound->id != bound[0]);
  CHECK(plans.stats().plans.misses == 19);
  CHECK(plans.bound().take_evicted() == std::vector<uint64_t>{bound[3]}); // longest unused by now
}

TEST_CASE("devices let go of the bound plans of a plan that left the cache", "[actors][E6]") {
  deterministic_session s(rankless_chain(), 1);
  for (size_t rank = 1; rank <= 17; ++rank) {
    auto answer = s.run({{"x", tensor(dtype::float32, ones(rank))}});
    s.settle();
    s.complete_all();
    CHECK(answer.get().outputs.size() == 1);
  }
  REQUIRE(s.log(0).installs.size() == 17);
  CHECK(s.log(0).retired == std::vector<uint64_t>{s.log(0).installs[0].bound->id});
}

TEST_CASE("runs whose inputs stay on devices have another plan if copies go beside work", "[actors][E7][B7]") {
  std::vector<device_info> devices = two_devices();
  const auto prepare_staying = [](session_plans& plans) {
    const named_device_tensors staying{{"x", make_host_resident(tensor(dtype::float32, {2, 3}), "a")}};
    const named_tensors none;
    return find_or_make([&](const plan_outcome& made) { return plans.prepare({none, staying}, made); }).source;
  };
  session_plans one_queue = plans_of(batched_chain(), {}, devices);
  CHECK(prepare(one_queue, {2, 3}).source == prepare_staying(one_queue));
  devices[0].copies_beside_work = true;
  session_plans several = plans_of(batched_chain(), {}, devices);
  const planned_model_ptr coming = prepare(several, {2, 3}).source;
  const planned_model_ptr staying = prepare_staying(several);
  CHECK_FALSE(coming->compiled->options.values_stay);
  CHECK(staying->compiled->options.values_stay);
  CHECK(prepare(several, {2, 3}).source == coming);
  CHECK(prepare_staying(several) == staying);
}

TEST_CASE("runs that are too small for a split plan go by one device, and large ones by it again", "[actors][split]") {
  session_plans plans = plans_of(layers(2), {.policy = placement_policy::split, .split_along = 0});
  const planned_model_ptr split = prepare(plans, {256, 64}).source;
  REQUIRE(split->compiled->split);
  CHECK(split->compiled->split->team == std::vector<std::string>{"a", "b"});
  const planned_model_ptr whole = prepare(plans, {1, 64}).source;
  CHECK_FALSE(whole->compiled->split);
  CHECK(std::ranges::all_of(whole->compiled->placement, [](device_index d) { return d == 0; }));
  CHECK(prepare(plans, {1, 64}).cached);
  CHECK(prepare(plans, {192, 64}).source == split);
  CHECK(prepare(plans, {2, 64}).source == whole); // a part would have no row
}

TEST_CASE("runs that are too small for a saved split plan go by one device", "[actors][split]") {
  const graph model = layers(2);
  session_plans first = plans_of(model, {.policy = placement_policy::split, .split_along = 0});
  const scratch_folder folder;
  const auto file = folder.write("plan.json", to_json(*prepare(first, {256, 64}).source->compiled));
  session_plans again = plans_of(model, {.plan_file = file.string()});
  CHECK(prepare(again, {256, 64}).source->compiled->split);
  CHECK_FALSE(prepare(again, {1, 64}).source->compiled->split);
}

TEST_CASE("a device without memory for a model's weights gets a part of them", "[plan][split]") {
  const int64_t weights = 4 * 64 * 64 * 4; // of four layers
  const auto g = inferred_program(layers(4));
  const auto p =
      make_plan(g, two_devices(weights * 3 / 4), {.policy = placement_policy::split, .expected = {{"n", 64}}});
  REQUIRE(p->split);
  CHECK(p->split->along == 1);
  CHECK(std::ranges::max(p->weight_bytes) <= weights * 3 / 4);
}
