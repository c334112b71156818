#include "actors/engine_access.hpp"

#include "device/host_block.hpp"
#include "support/catch.hpp"
#include "support/direct_evaluation.hpp"
#include "support/reference_device.hpp"
#include "support/small_models.hpp"

#include <thread>

using namespace troupe;
using namespace troupe::test;

namespace {

engine reference_engine(size_t count) {
  engine_hooks hooks;
  for (size_t i = 0; i < count; ++i)
    hooks.custom_devices.push_back([i] { return std::make_unique<reference_device>("ref" + std::to_string(i)); });
  return make_engine({.devices = {}}, hooks);
}

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

} // namespace

TEST_CASE("a model runs on the null device and gives zeros of the right shape", "[actors]") {
  engine e({.devices = {"null"}});
  const session s = e.load(chain(3));
  const run_result r = s.run({{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}});
  REQUIRE(r.outputs.size() == 1);
  const tensor& out = r.outputs.begin()->second;
  CHECK(out.dims() == shape{2, 3});
  CHECK(out.values<float>()[5] == 0);
  CHECK(r.stats.chunks == 1);
}

TEST_CASE("the efficiency of a run is the busy share of the devices that worked", "[actors][C8]") {
  const run_stats stats{.total_ms = 10, .busy_ms = {{"a", 10}, {"b", 5}, {"idle", 0}}};
  CHECK(stats.parallel_efficiency() == Approx(0.75));
  CHECK(run_stats{}.parallel_efficiency() == 0);
  engine e({.devices = {"cpu*2"}});
  const run_result r = e.load(chain(4, {200, 500}), {.policy = placement_policy::round_robin, .fuse = false})
                           .run({{"x", floats({200, 500}, std::vector<float>(100000, 1.f))}});
  CHECK(r.stats.parallel_efficiency() > 0);
  CHECK(r.stats.parallel_efficiency() <= 1);
}

TEST_CASE("an engine allocates inputs, whose bytes are used again", "[actors]") {
  engine e({.devices = {"null"}});
  const session s = e.load(chain(1));
  tensor x = e.allocate(dtype::float32, {2, 3});
  const void* const data = x.data();
  CHECK(reinterpret_cast<uintptr_t>(data) % host_block_alignment == 0);
  std::fill_n(x.mutable_data<float>(), 6, 1.f);
  CHECK(s.run({{"x", x}}).outputs.size() == 1);
  x = {};
  // The run's message may keep its handle for a moment longer than the answer takes. What is had meanwhile is kept:
  // given back after those bytes, it would be had again and again in their place.
  std::vector<tensor> others;
  const auto has_them_again = [&] {
    others.push_back(e.allocate(dtype::float32, {4, 3}));
    return others.back().data() == data;
  };
  bool again = has_them_again();
  for (int i = 0; i < 1000 && !again; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    again = has_them_again();
  }
  CHECK(again);
  CHECK(e.allocate(dtype::string, {1}).defined());
}

TEST_CASE("a model gives the same result on one device and alternating over three", "[actors][A7][A13]") {
  for (size_t devices : {1, 3}) {
    engine e(reference_engine(devices));
    const session s = e.load(chain(4), {.policy = placement_policy::round_robin, .fuse = false});
    const run_result r = s.run({{"x", floats({2, 3}, {-1, 0, 1, 2, 3, 4})}});
    const tensor out = r.outputs.begin()->second;
    CHECK(out.values<float>()[0] == Approx(sigmoid(sigmoid(-1))));
    CHECK(r.stats.chunks == (devices == 1 ? 1 : 4));
  }
}

namespace {

/// x → two ways → together again, three times over.
graph diamonds() {
  graph_builder b;
  value_id v = b.input("x", {4, 4});
  for (int i = 0; i < 3; ++i)
    v = b.op("Sigmoid", {b.op("MatMul", {b.op("Relu", {v}), b.op("Sigmoid", {v})})});
  b.output(v);
  return b.g;
}

/// Two halves that share nothing, not even an input.
graph disjoint_branches() {
  graph_builder b;
  for (const char* name : {"x", "y"}) {
    value_id v = b.input(name, {4, 4});
    for (int i = 0; i < 5; ++i)
      v = b.op(i % 2 ? "Sigmoid" : "Relu", {v});
    b.output(v);
  }
  return b.g;
}

named_tensors inputs_for(const session& s) {
  named_tensors inputs;
  for (const value_info& input : s.inputs()) {
    tensor t(dtype::float32, constants(*input.dims));
    for (int64_t i = 0; i < t.size(); ++i)
      t.mutable_data<float>()[i] = static_cast<float>(i % 7) / 3 - 1;
    inputs[input.name] = t;
  }
  return inputs;
}

void check_against_direct(const graph& model, engine& e, placement_policy policy, bool fuse) {
  const session s = e.load(model, {.policy = policy, .fuse = fuse});
  const named_tensors inputs = inputs_for(s), expected = evaluate_directly(model, inputs);
  for (int run = 0; run < 3; ++run) { // re-execution uses the same plan
    const named_tensors found = s.run(inputs).outputs;
    REQUIRE(found.size() == expected.size());
    for (const auto& [name, t] : expected) {
      REQUIRE(found.at(name).dims() == t.dims());
      for (int64_t i = 0; i < t.size(); ++i)
        REQUIRE(found.at(name).data<float>()[i] == Approx(t.data<float>()[i]).margin(1e-6));
    }
  }
  CHECK(s.stats().bound_plans.misses == 1);
}

} // namespace

TEST_CASE("every shape of graph gives the direct result on one and on three CPU devices", "[actors][A3][A9][A13]") {
  engine one({.devices = {"cpu"}}), three({.devices = {"cpu*3"}});
  for (const graph& model : {chain(1), chain(40), fan_out(30, 3), diamonds(), disjoint_branches()})
    for (const bool fuse : {false, true}) {
      check_against_direct(model, one, placement_policy::single, fuse);
      check_against_direct(model, three, placement_policy::single, fuse);
      check_against_direct(model, three, placement_policy::round_robin, fuse);
    }
}
