// Made-up devices whose times follow from a few figures: calibration finds these figures.
#include "measure/calibration.hpp"

#include "graph/graph.hpp"
#include "support/catch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace troupe;

namespace {

/// Times of a made-up device.
struct figures {
  double flops_per_s = 1e12, memory_bytes_per_s = 1e11;
  double launch_s = 2e-6, barrier_s = 3e-6, chunk_s = 4e-5, submit_s = 1e-5, wake_s = 3e-4;
  double up_bytes_per_s = 1e10, up_latency_s = 5e-6, down_bytes_per_s = 5e9, down_latency_s = 7e-6;
  double input_bytes_per_s = 8e9;
};

double bytes_of(const graph& g, const std::vector<value_id>& values) {
  double bytes = 0;
  for (value_id v : values)
    bytes += static_cast<double>(bytes_of(g.values[v].type, volume(constants(*g.values[v].dims))));
  return bytes;
}

/// Seconds in which a node computes, its launch aside.
double work_seconds(const figures& f, const graph& g, const node& n) {
  if (n.op_type == "Add")
    return (bytes_of(g, n.inputs) + bytes_of(g, n.outputs)) / f.memory_bytes_per_s;
  if (!n.op_type.starts_with("MatMul"))
    return 0;
  const auto size = static_cast<double>((*g.values[n.inputs[0]].dims)[0].constant());
  return 2 * size * size * size / f.flops_per_s;
}

/// Barriers before the last wave: nodes of one depth run side by side.
int64_t barriers_of(const graph& g) {
  std::vector<int64_t> depth(g.values.size(), 0);
  int64_t deepest = 0;
  for (const node& n : g.nodes) {
    for (value_id v : n.inputs)
      depth[n.outputs[0]] = std::max(depth[n.outputs[0]], depth[v] + 1);
    deepest = std::max(deepest, depth[n.outputs[0]]);
  }
  return deepest - 1;
}

std::vector<probe_times> run_on(const figures& f, bool host_memory, const probe& p) {
  const graph& g = p.model.source();
  if (g.values[g.inputs[0]].type == dtype::bfloat16)
    return {};
  const auto nodes = static_cast<double>(g.nodes.size());
  probe_times t;
  for (const node& n : g.nodes)
    t.nodes_s += work_seconds(f, g, n);
  t.busy_s = t.nodes_s + nodes * f.launch_s;
  t.wall_s = t.busy_s + (p.pause_s > 0 ? f.wake_s : 0) + f.chunk_s + static_cast<double>(p.chunks - 1) * f.submit_s;
  if (!host_memory) {
    t.busy_s += static_cast<double>(barriers_of(g)) * f.barrier_s;
    t.wall_s += static_cast<double>(barriers_of(g)) * f.barrier_s;
    t.wall_s += bytes_of(g, g.inputs) / f.up_bytes_per_s + static_cast<double>(g.inputs.size()) * f.up_latency_s;
    t.wall_s += bytes_of(g, g.outputs) / f.down_bytes_per_s + static_cast<double>(g.outputs.size()) * f.down_latency_s;
  }
  if (!p.reachable_inputs)
    t.wall_s += bytes_of(g, g.inputs) / f.input_bytes_per_s;
  const probe_times slow{1, 1, 1}, none{}; // times at the ends do not count
  return {t, slow, t, t, none};
}

std::map<std::string, double> calibrated(bool host_memory, const figures& f, double steps) {
  device_info device{.name = "made-up", .description = "a made-up device", .host_memory = host_memory};
  if (!host_memory)
    device.gpu.emplace();
  double last = 0;
  const auto run = [&](const probe& p) { return run_on(f, host_memory, p); };
  const measured_profile m = calibrate(device, run, [&](double done, double all) {
    CHECK(done == last + 1);
    CHECK(all == steps);
    last = done;
  });
  CHECK(last == steps);
  CHECK(m.device == key_of(device));
  CHECK_NOTHROW(refine(device.profile, m));
  return {m.values.begin(), m.values.end()};
}

} // namespace

TEST_CASE("calibration finds the figures of a device in host memory", "[measure][C6]") {
  const figures f;
  const std::map<std::string, double> found = calibrated(true, f, 7);
  for (const char* type : {"float64", "float32", "float16", "int8"})
    CHECK(found.at(type) == Approx(f.flops_per_s));
  CHECK_FALSE(found.contains("bfloat16")); // the device cannot run it
  CHECK(found.at("memory_bytes_per_s") == Approx(f.memory_bytes_per_s));
  CHECK(found.at("launch_s") == Approx(f.launch_s));
  CHECK(found.at("chunk_s") == Approx(f.chunk_s));
  CHECK(found.at("submit_s") == Approx(f.submit_s));
  CHECK(found.at("wake_s") == Approx(f.wake_s));
  CHECK_FALSE(found.contains("barrier_s"));
  CHECK_FALSE(found.contains("up.bytes_per_s"));
}

TEST_CASE("calibration finds the figures of a device with a memory of its own", "[measure][C6]") {
  const figures f;
  const std::map<std::string, double> found = calibrated(false, f, 10);
  CHECK(found.at("launch_s") == Approx(f.launch_s));
  CHECK(found.at("barrier_s") == Approx(f.barrier_s));
  CHECK(found.at("up.bytes_per_s") == Approx(f.up_bytes_per_s).epsilon(1e-3));
  CHECK(found.at("down.bytes_per_s") == Approx(f.down_bytes_per_s).epsilon(1e-3));
  CHECK(found.at("up.latency_s") == Approx(f.up_latency_s).epsilon(0.05));
  CHECK(found.at("wake_s") == Approx(f.wake_s));
  CHECK(found.at("input_bytes_per_s") == Approx(f.input_bytes_per_s));
}

TEST_CASE("a device that runs nothing has no speeds", "[measure][C6]") {
  const auto nothing = [](const probe&) { return std::vector<probe_times>{}; };
  for (const auto& [name, value] : calibrate({.name = "none"}, nothing, [](double, double) {}).values) {
    INFO(name);
    CHECK(value == 0);
    CHECK(name == "launch_s");
  }
}

TEST_CASE("only GPUs with a clock of their own are warmed up", "[measure][C6]") {
  device_info device{.name = "any"};
  CHECK(probe_warm_up_s(device) == 0);
  device.kind = device_kind::vulkan;
  device.gpu.emplace();
  device.processor = "cpu"; // emulated
  CHECK(probe_warm_up_s(device) == 0);
  device.processor = "vulkan:0";
  device.transfers = transfer_path::mapped; // of a GPU that shares the host's memory
  CHECK(probe_warm_up_s(device) > 0);
}

TEST_CASE("a saved plan of one chunk is cut into chunks of equal length", "[measure][C6]") {
  using nlohmann::json;
  const json saved = {{"chunks", {{{"device", "cpu"}, {"nodes", {"a", "b", "c", "d", "e"}}, {"waves", 3}}}},
                      {"version", 1}};
  const json cut = json::parse(cut_plan(saved.dump(), 2));
  CHECK(cut.at("version") == 1);
  CHECK(cut.at("chunks") ==
        json{{{"device", "cpu"}, {"nodes", {"a", "b"}}}, {{"device", "cpu"}, {"nodes", {"c", "d", "e"}}}});
}
