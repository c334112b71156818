// Shared by plan tests: made-up operators that only have shapes, and devices.
#pragma once

#include "plan/bind/bound_plan.hpp"
#include "support/graph_builder.hpp"
#include "support/made_up_op.hpp"

namespace troupe::testing {

/// The launches of operators that every GPU runs.
inline std::vector<launch_list> any_launch(const gpu_call&) {
  std::vector<launch_list> lists(1);
  lists[0].name = "any";
  return lists;
}

/// Their graphs state all dims.
inline void infer_nothing(infer_context&) {}

/// Made-up operators: "plain" has its own output, "view" and "in_place" alias input 0, "host" is not for GPUs.
inline const op_def& plain_op =
    gpu_op({.domain = "test", .name = "plain", .since = 1, .inputs = {0, 255}, .infer = infer_nothing}, any_launch);
inline const op_def host_op{.domain = "test", .name = "host", .since = 1, .inputs = {0, 255}, .infer = infer_nothing};
inline const op_def view_op{
    .domain = "test", .name = "view", .since = 1, .alias = aliasing::view, .infer = infer_nothing};
inline const op_def& in_place_op = gpu_op({.domain = "test",
                                           .name = "in_place",
                                           .since = 1,
                                           .inputs = {1, 255},
                                           .alias = aliasing::in_place,
                                           .infer = infer_nothing},
                                          any_launch);

using test::graph_builder;

/// `count` CPU-like devices with plenty of memory.
inline std::vector<device_info> cpus(size_t count) {
  std::vector<device_info> devices;
  for (size_t i = 0; i < count; ++i)
    devices.push_back({.name = fmt::format("cpu#{}", i), .memory_bytes = int64_t{1} << 50});
  return devices;
}

/// `count` GPUs with plenty of memory.
inline std::vector<device_info> gpus(size_t count) {
  std::vector<device_info> devices = cpus(count);
  for (size_t i = 0; i < count; ++i) {
    devices[i].name = fmt::format("vulkan:{}", i);
    devices[i].kind = device_kind::vulkan;
    devices[i].host_memory = false;
    devices[i].gpu.emplace();
  }
  return devices;
}

/// GPUs, and a CPU for nodes that they cannot run.
inline std::vector<device_info> gpus_and_fallback(size_t count) {
  std::vector<device_info> devices = gpus(count);
  devices.push_back(cpus(1)[0]);
  devices.back().fallback = true;
  return devices;
}

} // namespace troupe::testing
