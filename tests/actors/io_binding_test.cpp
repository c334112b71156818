// Outputs that stay on their device and feed later runs: the same results as through the host, and no copies.
#include "support/bound_values.hpp"
#include "support/kernel_case.hpp"

#include <thread>

using namespace troupe;
using namespace troupe::test;

namespace {

/// A decoder in small: x [1, 4], past [n, 4] → present = past after x, [n + 1, 4]; y = Relu(present).
graph growing_model() {
  graph_builder b;
  const value_id x = b.input("x", {1, 4}), past = b.input("past", {dim::symbol("past"), 4});
  const value_id present = b.op("Concat", {past, x}, attrs_of({{"axis", int64_t{0}}}), "present");
  b.g.outputs = {present, b.op("Relu", {present}, {}, "y")};
  return b.g;
}

struct stage {
  std::string name;
  std::function<engine()> open;
  session_options how = {};
};

/// Alternates between devices by node.
session_options by_node() {
  return {.policy = placement_policy::round_robin, .fuse = false};
}

std::vector<stage> stages() {
  const auto named = [](std::vector<std::string> devices) { return [=] { return engine({.devices = devices}); }; };
  const auto made = [](std::vector<device_factory> devices) { return [=] { return engine_of(devices); }; };
  const auto blocks = std::make_shared<host_block_pool>();
  return {{"cpu", named({"cpu"})},
          {"reference", made({reference("ref")})},
          {"two references, by node", made({reference("a"), reference("b")}), by_node()},
          {"vulkan", made({gpu("g")})},
          {"vulkan, poisoned", made({gpu("g", {.poison = true})})},
          {"vulkan, staged, not coherent", made({gpu("g", {.force_non_coherent = true, .force_staging = true})})},
          {"vulkan, imported memory, poisoned",
           made({gpu("g", {.blocks = blocks, .poison = true, .force_staging = true})})},
          {"two vulkans and a cpu, by node", named({"vulkan:0*2", "cpu"}), by_node()}};
}

} // namespace

TEST_CASE("a bound output feeds the next run as if it had gone through the host", "[actors][vulkan][B7]") {
  const stage& s = GENERATE(from_range(stages()));
  INFO(s.name);
  engine e = s.open();
  const session model = e.load(growing_model(), s.how);
  bound_session decoder = model.bind({{"present", "past"}});
  tensor past(dtype::float32, {0, 4}); // empty at first
  for (int step = 0; step < 6; ++step) {
    const tensor x = random_floats({1, 4}, static_cast<uint64_t>(step));
    named_tensors inputs{{"x", x}};
    if (step == 0)
      inputs["past"] = past;
    const run_result bound = decoder.run(inputs);
    const run_result fed = model.run({{"x", x}, {"past", past}});
    past = fed.outputs.at("present");
    REQUIRE(past.dims() == shape{step + 1, 4});
    CHECK(bound.outputs.size() == 1);
    CHECK(bound.kept.empty());
    CHECK(same(bound.outputs.at("y"), fed.outputs.at("y")));
    CHECK(same(decoder.fetch("present"), past));
  }
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("bound values of many sizes stay right if copies are direct or staged", "[actors][vulkan][B7]") {
  const stage& s = GENERATE(from_range(stages()));
  INFO(s.name);
  engine e = s.open();
  for (const shape& dims : {shape{}, shape{3}, shape{0, 5}, shape{200, 300}}) {
    bound_session sum = e.load(summing_model(dims), s.how).bind({{"next", "state"}});
    for (int step = 1; step <= 4; ++step) {
      named_tensors inputs{{"x", filled(dims, static_cast<float>(step))}};
      if (step == 1)
        inputs["state"] = filled(dims, 0.f);
      const tensor y = sum.run(inputs).outputs.at("y");
      const auto total = static_cast<float>(step * (step + 1) / 2);
      CHECK(same(y, filled(dims, -total)));
    }
    CHECK(same(sum.fetch("next"), filled(dims, 10.f)));
  }
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("bound values are not copied, and memory stays flat", "[actors][vulkan][B7][D6]") {
  const bool on_gpu = GENERATE(false, true);
  engine e(engine_of({on_gpu ? gpu("d") : reference("d")}));
  const shape dims{64, 64};
  const int64_t bytes = 64 * 64 * 4;
  bound_session sum = e.load(summing_model(dims)).bind({{"next", "state"}});
  const auto step = [&] { sum.run({{"x", filled(dims, 1.f)}}); };
  sum.run({{"x", filled(dims, 1.f)}, {"state", filled(dims, 0.f)}});
  step();
  const device_stats before = e.stats().at(0);
  for (int i = 0; i < 200; ++i)
    step();
  const device_stats after = e.stats().at(0);
  CHECK(after.uploaded_bytes - before.uploaded_bytes == 200 * bytes);     // x
  CHECK(after.downloaded_bytes - before.downloaded_bytes == 200 * bytes); // y
  const auto start =
      std::chrono::steady_clock::now(); // the last run's input is let go when its coordinator has looked up
  while (e.stats().at(0).resident_bytes != bytes && std::chrono::steady_clock::now() - start < std::chrono::seconds(5))
    std::this_thread::yield();
  CHECK(e.stats().at(0).resident_bytes == bytes);
  CHECK(after.arena_bytes == before.arena_bytes);
  CHECK(same(sum.fetch("next"), filled(dims, 202.f)));
  CHECK(e.stats().at(0).downloaded_bytes == after.downloaded_bytes + bytes);
}

TEST_CASE("a bound input that is handed on unchanged keeps no older values", "[actors][B7][D6]") {
  graph_builder b;
  const value_id x = b.input("x", {8}), state = b.input("state", {8}), fixed = b.input("fixed", {4});
  b.g.outputs = {b.op("Add", {state, x}, {}, "next"), fixed};
  engine e(engine_of({reference("ref")}));
  bound_session steps = e.load(b.g).bind({{"next", "state"}, {"fixed", "fixed"}});
  const auto held = [&] { return e.stats().at(0).resident_bytes; };
  named_tensors inputs{{"x", filled({8}, 1.f)}, {"state", filled({8}, 0.f)}};
  run_options options{.device_inputs = {{"fixed", e.put(filled({4}, 7.f), "ref")}}};
  for (int step = 1; step <= 6; ++step) {
    steps.run(inputs, options);
    inputs.erase("state");
    options.device_inputs.clear();
    const auto start = std::chrono::steady_clock::now(); // what came before is let go after the answer
    while (held() != 48 && std::chrono::steady_clock::now() - start < std::chrono::seconds(5))
      std::this_thread::yield();
    CHECK(held() == 48); // next and fixed
    CHECK(same(steps.fetch("next"), filled({8}, static_cast<float>(step))));
    CHECK(same(steps.fetch("fixed"), filled({4}, 7.f)));
  }
}

TEST_CASE("a value's memory is free when its last handle is gone, on any thread", "[vulkan][D6]") {
  engine e(engine_of({gpu("d")}));
  device_tensor outlives;
  {
    device_tensor one = e.put(filled({1000}, 1.f), "d");
    device_tensor copy = one;
    outlives = e.put(filled({8}, 2.f), "d");
    CHECK(same(e.fetch(outlives), filled({8}, 2.f))); // after both copies
    CHECK(e.stats().at(0).resident_bytes == 4032);
    one = nullptr;
    CHECK(e.stats().at(0).resident_bytes == 4032);
    std::thread([moved = std::move(copy)]() mutable { moved = nullptr; }).join();
    CHECK(e.stats().at(0).resident_bytes == 32);
  }
  { const engine gone = std::move(e); }
  outlives = nullptr; // nothing is left to free
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("a value on the wrong device goes through the host", "[actors][vulkan][B7]") {
  const bool on_gpu = GENERATE(false, true);
  engine e(engine_of({on_gpu ? gpu("a") : reference("a"), on_gpu ? gpu("b") : reference("b")}));
  const session model = e.load(summing_model({2, 3}));
  const named_tensors x{{"x", filled({2, 3}, 1.f)}};
  for (const auto& [device, fetched] : std::map<std::string, int64_t>{{"a", 0}, {"b", 24}}) {
    const device_tensor state = e.put(filled({2, 3}, 5.f), device);
    CHECK(state->device() == device);
    const run_result result = model.run(x, {.device_inputs = {{"state", state}}, .keep = {"next"}});
    CHECK(result.stats.fetched_bytes == fetched);
    CHECK(same(result.outputs.at("y"), filled({2, 3}, -6.f)));
    REQUIRE(result.kept.size() == 1);
    CHECK(same(e.fetch(result.kept.at("next")), filled({2, 3}, 6.f)));
    CHECK(result.kept.at("next")->device() == "a");
  }
}

TEST_CASE("outputs that are views, inputs, constants or needed elsewhere can be kept", "[actors][vulkan][B7]") {
  const stage& s = GENERATE(from_range(stages()));
  INFO(s.name);
  graph_builder b;
  const value_id x = b.input("x", {2, 3});
  const value_id shared = b.op("Relu", {x});
  const value_id other = b.op("Neg", {shared}); // by node: on another device
  b.g.outputs = {shared, other, b.op("Flatten", {other}), x, b.constant("c", floats({2}, {7, 8}))};
  engine e = s.open();
  const session model = e.load(b.g, s.how);
  const tensor in = floats({2, 3}, {-1, 2, 3, 4, 5, 6});
  const named_tensors all = model.run({{"x", in}}).outputs;
  REQUIRE(all.size() == 5);
  std::vector<std::string> names;
  for (const auto& [name, value] : all)
    names.push_back(name);
  const run_result kept = model.run({{"x", in}}, {.keep = names});
  CHECK(kept.outputs.empty());
  for (const auto& [name, value] : all) {
    INFO(name);
    CHECK(same(e.fetch(kept.kept.at(name)), value));
    const run_result one =
        model.run({}, {.device_inputs = {{"x", e.put(in, e.devices().front().name)}}, .keep = {name}});
    CHECK(one.outputs.size() == 4);
    CHECK(same(e.fetch(one.kept.at(name)), value));
    for (const auto& [other_name, got] : one.outputs)
      CHECK(same(got, all.at(other_name)));
  }
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("inputs that decide shapes come to the host first", "[actors][B7][D1]") {
  graph_builder b;
  b.output(b.op("Reshape", {b.input("x", {2, 3}), b.input("to", {2}, dtype::int64)}, {}, "y"));
  engine e(engine_of({reference("ref")}));
  const session model = e.load(b.g);
  for (const shape& dims : {shape{3, 2}, shape{6, 1}}) {
    const device_tensor on_device = e.put(tensor::of<int64_t>({2}, dims), "ref");
    const run_result result = model.run({{"x", filled({2, 3}, 1.f)}}, {.device_inputs = {{"to", on_device}}});
    CHECK(result.outputs.at("y").dims() == dims);
    CHECK(result.stats.fetched_bytes == 16);
  }
}

TEST_CASE("bound sessions run side by side", "[actors][vulkan][A11]") {
  const stage& s = GENERATE(from_range(stages()));
  INFO(s.name);
  engine e = s.open();
  const session model = e.load(summing_model({50}), s.how);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 1; caller <= 3; ++caller)
    callers.emplace_back([&, caller] {
      bound_session sum = model.bind({{"next", "state"}});
      const tensor x = filled({50}, static_cast<float>(caller));
      for (int i = 1; i <= 30; ++i) {
        named_tensors inputs{{"x", x}};
        if (i == 1)
          inputs["state"] = filled({50}, 0.f);
        wrong += !same(sum.run(inputs).outputs.at("y"), filled({50}, static_cast<float>(-i * caller)));
      }
    });
  for (std::thread& t : callers)
    t.join();
  CHECK(wrong == 0);
  CHECK(new_gpu_messages() == "");
}
