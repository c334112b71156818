// The conformance suite of the device interface: every kind of device that computes must pass it.
#include "cpu/cpu_device.hpp"
#include "device/slow_device.hpp"
#include "support/catch.hpp"
#include "support/chunk_works.hpp"
#include "support/far_device.hpp"
#include "support/gpu.hpp"
#include "support/graph_builder.hpp"
#include "support/run_inline.hpp"

#include <future>
#include <thread>

using namespace troupe;
using test::graph_builder;

namespace {

struct tested_device {
  std::string name;
  std::function<std::unique_ptr<device>(std::string)> make;
};

const std::vector<tested_device>& factories() {
  static const std::vector<tested_device> all = {
      {"cpu", [](std::string name) { return make_cpu_device(std::move(name)); }},
      {"cpu, poisoned", [](std::string name) { return make_cpu_device(std::move(name), {.poison = true}); }},
      {"slow", [](std::string name) { return make_slow_device(make_cpu_device(name), name, 40); }},
      {"vulkan", [](std::string name) { return test::open_gpu({}, name); }},
      {"vulkan, poisoned", [](std::string name) { return test::open_gpu({.poison = true}, name); }},
      {"vulkan, staged, not coherent",
       [](std::string name) { return test::open_gpu({.force_non_coherent = true, .force_staging = true}, name); }},
      {"vulkan, imported memory",
       [](std::string name) {
         return test::open_gpu({.blocks = std::make_shared<host_block_pool>(), .force_staging = true}, name);
       }},
      {"far cpu", [](std::string name) { return test::open_far(make_cpu_device(std::move(name))); }},
      {"far vulkan", [](std::string name) { return test::open_far(test::open_gpu({}, name)); }},
  };
  return all;
}

/// Submits a chunk and waits for its end.
chunk_result run_chunk(device& d, chunk_work work) {
  std::promise<chunk_result> ended;
  d.submit(std::move(work), [&](chunk_result r) { ended.set_value(std::move(r)); });
  return ended.get_future().get();
}

struct stage {
  stage(const tested_device& factory, size_t count, std::shared_ptr<const graph> g,
        placement_policy policy = placement_policy::single) {
    std::vector<device_info> infos;
    for (size_t i = 0; i < count; ++i) {
      devices.push_back(factory.make(i == 0 ? "d" : fmt::format("d#{}", i)));
      infos.push_back(devices.back()->info());
      pointers.push_back(devices.back().get());
    }
    p = make_plan(std::move(g), infos, {policy});
  }
  std::vector<std::unique_ptr<device>> devices;
  std::vector<device*> pointers;
  std::shared_ptr<const plan> p;
};

/// One Relu of four floats, installed.
struct relu_stage : stage {
  explicit relu_stage(const tested_device& factory) : stage(factory, 1, relu()), bound(bind_segment(p, 0, {})) {
    devices[0]->install(bound, 0);
  }
  static std::shared_ptr<const graph> relu() {
    graph_builder n;
    return n.program({n.op("Relu", {n.input({4})})});
  }
  const bound_plan_ptr bound;
};

tensor ramp(shape dims, float from, float step) {
  tensor t(dtype::float32, std::move(dims));
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = from + step * static_cast<float>(i);
  return t;
}

float sigmoid_of_relu(float x) {
  return 1 / (1 + std::exp(-std::max(x, 0.f)));
}

} // namespace

TEST_CASE("a chain of nodes computes, in every run afresh", "[device][A2]") {
  const tested_device& f = GENERATE(from_range(factories()));
  INFO(f.name);
  graph_builder n;
  const value_id x = n.input({dim::symbol("batch"), 3});
  stage s(f, 1, n.program({n.op("Sigmoid", {n.op("Relu", {x})})}));
  inline_runner runner(s.p, s.pointers);
  std::vector<tensor> kept;
  for (int run = 0; run < 3; ++run) {
    const tensor in = ramp({2 + run, 3}, -3.f + static_cast<float>(run), 1.f);
    const tensor out = runner.run(std::span(&in, 1)).at(0);
    REQUIRE(out.dims() == in.dims());
    for (int64_t i = 0; i < out.size(); ++i)
      CHECK(out.values<float>()[i] == Approx(sigmoid_of_relu(in.values<float>()[i])));
    kept.push_back(out);
  }
  // Outputs that the caller keeps are not overwritten by later runs.
  CHECK(kept[0].values<float>()[5] == Approx(sigmoid_of_relu(2.f)));
}

TEST_CASE("values cross devices and stay for later chunks", "[device][A4][B4]") {
  const tested_device& f = GENERATE(from_range(factories()));
  INFO(f.name);
  graph_builder n;
  const value_id x = n.input({2, 3});
  const value_id a = n.op("Relu", {x});
  const value_id b = n.op("Sigmoid", {a});
  const value_id c = n.op("Relu", {x});
  const value_id d = n.op("Sigmoid", {c});
  const value_id e = n.op("Sigmoid", {a});
  stage s(f, 2, n.program({b, d, e, a}), placement_policy::round_robin);
  inline_runner runner(s.p, s.pointers);
  for (int run = 0; run < 2; ++run) {
    const tensor in = ramp({2, 3}, -3.f, 1.f + static_cast<float>(run));
    const std::vector<tensor> out = runner.run(std::span(&in, 1));
    for (int64_t i = 0; i < in.size(); ++i) {
      const float v = in.values<float>()[i];
      for (size_t o : {0, 1, 2})
        CHECK(out[o].values<float>()[i] == Approx(sigmoid_of_relu(v)));
      CHECK(out[3].values<float>()[i] == std::max(v, 0.f));
    }
  }
}

TEST_CASE("two executions in flight do not disturb each other", "[device][A5]") {
  const tested_device& f = GENERATE(from_range(factories()));
  INFO(f.name);
  graph_builder n;
  const value_id x = n.input({4});
  const value_id a = n.op("Relu", {x});
  const value_id b = n.op("Sigmoid", {a});
  const value_id c = n.op("Relu", {b});
  stage s(f, 2, n.program({c}), placement_policy::round_robin);
  const bound_plan_ptr bound = bind_segment(s.p, 0, {});
  for (device_index d = 0; d < 2; ++d)
    s.devices[d]->install(bound, d);
  std::vector<std::map<value_id, tensor>> values(2);
  values[0][x] = ramp({4}, 0.f, 1.f);
  values[1][x] = ramp({4}, 10.f, 1.f);
  for (chunk_id id = 0; id < s.p->chunks.size(); ++id)
    for (uint32_t slot : {0u, 1u}) {
      const chunk& chunk = s.p->chunks[id];
      std::vector<tensor> uploads;
      for (value_id v : chunk.uploads)
        uploads.push_back(values[slot].at(v));
      chunk_work work = test::work_of(*bound, id, std::move(uploads));
      work.execution = work.slot = slot;
      REQUIRE(run_chunk(*s.devices[chunk.device], work).ok());
      for (size_t i = 0; i < chunk.downloads.size(); ++i)
        values[slot][chunk.downloads[i]] = work.downloads[i]->host();
    }
  for (uint32_t slot : {0u, 1u})
    for (int64_t i = 0; i < 4; ++i)
      CHECK(values[slot].at(c).values<float>()[i] == Approx(sigmoid_of_relu(values[slot].at(x).values<float>()[i])));
}

TEST_CASE("a cancelled chunk ends with that error", "[device][A9]") {
  const tested_device& f = GENERATE(from_range(factories()));
  INFO(f.name);
  const relu_stage s(f);
  chunk_work work = test::work_of(*s.bound, 0, {ramp({4}, 0.f, 1.f)});
  work.stop = std::make_shared<const std::atomic<bool>>(true);
  const chunk_result result = run_chunk(*s.devices[0], work);
  CHECK_FALSE(result.ok());
  CHECK(result.code == errc::cancelled);
  CHECK_FALSE(work.downloads.at(0)->filled());
}

TEST_CASE("an execution that ended early leaves the caller's memory", "[device][A9]") {
  const tested_device& f = GENERATE(from_range(factories()));
  INFO(f.name);
  const relu_stage s(f);
  auto data = std::make_shared<std::vector<float>>(4, 1.f);
  const std::weak_ptr<std::vector<float>> caller = data;
  {
    chunk_work work = test::work_of(*s.bound, 0, {tensor(dtype::float32, {4}, data, data->data())});
    work.execution = 7;
    work.stop = std::make_shared<const std::atomic<bool>>(true);
    CHECK_FALSE(run_chunk(*s.devices[0], std::move(work)).ok());
  }
  data.reset();
  s.devices[0]->end(7);
  for (int i = 0; i < 1000 && !caller.expired(); ++i) // other threads may hold what they send
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(caller.expired());
}

TEST_CASE("a device counts its work and forgets retired plans", "[device][A11]") {
  const tested_device& f = GENERATE(from_range(factories()));
  INFO(f.name);
  graph_builder n;
  const value_id x = n.input({1024});
  stage s(f, 1, n.program({n.op("Sigmoid", {n.op("Relu", {x})})}));
  const bound_plan_ptr bound = bind_segment(s.p, 0, {});
  s.devices[0]->install(bound, 0);
  CHECK(s.devices[0]->stats().installed_plans == 1);
  CHECK(run_chunk(*s.devices[0], test::work_of(*bound, 0, {ramp({1024}, 0.f, 1.f)})).ok());
  CHECK(s.devices[0]->stats().chunks == 1);
  CHECK(s.devices[0]->stats().busy_ns > 0);
  CHECK(s.devices[0]->stats().arena_bytes == 4096);
  s.devices[0]->retire(bound->id);
  CHECK(s.devices[0]->stats().installed_plans == 0);
  CHECK(s.devices[0]->stats().arena_bytes == 0);
}

TEST_CASE("large values arrive whole, from memory of any kind", "[device][A8]") {
  const tested_device& f = GENERATE(from_range(factories()));
  INFO(f.name);
  graph_builder n;
  const value_id x = n.input({dim::symbol("batch"), 32768});
  stage s(f, 2, n.program({n.op("Relu", {n.op("Neg", {x})})}), placement_policy::round_robin);
  inline_runner runner(s.p, s.pointers);
  host_block_pool blocks;
  for (int run = 0; run < 4; ++run) {
    const shape dims{1 + run % 2, 32768};
    tensor in = run < 2 ? tensor(dtype::float32, dims) : make_host_tensor(blocks, dtype::float32, dims);
    for (int64_t i = 0; i < in.size(); ++i)
      in.mutable_data<float>()[i] = static_cast<float>(run * 1000 + i % 977 - 400);
    const tensor out = runner.run(std::span(&in, 1)).at(0);
    int64_t wrong = 0;
    for (int64_t i = 0; i < in.size(); ++i)
      wrong += out.values<float>()[i] != std::max(-in.values<float>()[i], 0.f);
    CHECK(wrong == 0);
  }
}

TEST_CASE("timed chunks say when each node ran", "[device][trace]") {
  const tested_device& f = GENERATE(from_range(factories()));
  INFO(f.name);
  graph_builder n;
  const value_id x = n.input({2048});
  stage s(f, 1, n.program({n.op("Sigmoid", {n.op("Neg", {x})})}));
  const bound_plan_ptr bound = bind_segment(s.p, 0, {});
  s.devices[0]->install(bound, 0);
  const int64_t before = now_ns();
  chunk_work work = test::work_of(*bound, 0, {ramp({2048}, 0.f, 1.f)});
  work.timed = true;
  const chunk_result r = run_chunk(*s.devices[0], std::move(work));
  REQUIRE(r.ok());
  int64_t nodes = 0, sum = 0;
  for (const device_timing& t : r.timings) {
    CHECK(t.begin_ns <= t.end_ns);
    // A millisecond for clocks that differ.
    CHECK(t.begin_ns >= before - 1'000'000);
    CHECK(t.end_ns <= now_ns() + 1'000'000);
    nodes += t.kind == device_timing::work::node;
    sum += t.kind == device_timing::work::node ? t.end_ns - t.begin_ns : 0;
  }
  CHECK(nodes == 2);
  CHECK(sum <= now_ns() - before);
}
