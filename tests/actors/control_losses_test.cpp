// Devices that are lost while runs with control flow are in flight: the devices of bodies count, not only those of the
// graph around them.
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/deterministic_system.hpp"

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

namespace {

constexpr int64_t width = 64;
constexpr int64_t layer_bytes = width * width * 4;

/// x → Relu → at most n times: Sigmoid.
graph relu_and_loop() {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {2, 3});
  b.output(add_loop(b, "loop", n, no_value, b.op("Relu", {x}, {}, "first"),
                    [](body_builder& body, value_id, value_id go, value_id v) {
                      return std::pair(go, body.op("Sigmoid", {v}, {}, "step"));
                    }));
  return b.g;
}

/// n times: eight layers with weights, and twice the rows.
graph doubling_loop() {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {dim::symbol("rows"), width});
  b.output(add_loop(b, "loop", n, no_value, x, [](body_builder& body, value_id, value_id go, value_id v) {
    for (int i = 0; i < 8; ++i) {
      const std::string name = fmt::format("w{}", i);
      const std::vector<float> elements(width * width, 0.01f * static_cast<float>(i + 1));
      v = body.op("Tanh", {body.op("MatMul", {v, body.constant(name, tensor::of<float>({width, width}, elements))})});
    }
    return std::pair(go, body.op("Concat", {v, v}, attrs_of({{"axis", int64_t{0}}})));
  }));
  return b.g;
}

named_tensors loop_inputs(int64_t trips, const shape& dims) {
  return {{"n", count(trips)}, {"x", floats(dims, std::vector<float>(static_cast<size_t>(volume(dims)), 1))}};
}

} // namespace

TEST_CASE("a lost device that only bodies use costs every run of them a re-run", "[actors][control][C11][A14]") {
  const session_options pinned{.pins = {{"Relu_first", "d0"}, {"Sigmoid_step", "d1"}}, .fuse = false};
  deterministic_session s(relu_and_loop(), 2, pinned);
  auto in_body = s.run(loop_inputs(2, {2, 3}));
  s.settle();
  s.complete(0);
  REQUIRE(s.log(1).chunks.size() == 1);
  auto before_loop = s.run(loop_inputs(2, {2, 3})); // the body's device is not in its own plan
  s.settle();
  REQUIRE(s.log(0).chunks.size() == 1);
  s.kill(1);
  s.complete_all();
  for (auto* run : {&in_body, &before_loop}) {
    REQUIRE(is_ready(*run));
    const run_result result = run->get();
    CHECK(result.outputs.size() == 1);
    CHECK(result.stats.lost_devices == std::vector<std::string>{"d1"});
  }
}

TEST_CASE("a run goes on when a device that it does not use is lost, and spills to those left",
          "[actors][control][B3][C11]") {
  const bool has_spilled_before = GENERATE(false, true);
  const session_options pinned{.pins = {{"Concat_*", "d2"}}};
  deterministic_session s(doubling_loop(), 3, pinned, std::chrono::milliseconds(0), completion_mode::device,
                          10 * layer_bytes);
  const auto start = [&] {
    auto result = s.run(loop_inputs(2, {20, width}));
    s.settle();
    return result;
  };
  if (has_spilled_before) {
    auto earlier = start();
    s.complete_all();
    REQUIRE(is_ready(earlier));
    REQUIRE_FALSE(s.log(1).installs.empty());
  }
  const size_t batches = s.log(0).batches.size(), installs = s.log(1).installs.size();
  auto result = start();
  REQUIRE(s.log(0).chunks.size() == 1);
  s.kill(1);
  CHECK(s.log(0).batches.size() == batches + 1); // the first iteration fits: nothing starts over
  s.complete_all();
  REQUIRE(is_ready(result));
  CHECK(result.get().outputs.begin()->second.dims() == shape{80, width});
  CHECK(s.log(1).installs.size() == installs);
  const bound_plan& last = *s.log(2).installs.back().bound;
  CHECK(last.source->weight_bytes[0] > 0); // the layers have spilled
  CHECK(last.source->weight_bytes[1] > 0);
}
