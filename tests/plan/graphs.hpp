// Graphs for plan tests, built by hand from made-up operators that only have shapes.
#pragma once

#include "ops/op.hpp"
#include "plan/bind/bound_plan.hpp"
#include "support/made_up_op.hpp"

namespace troupe::testing {

/// What operators that every GPU runs answer.
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

/// Builds a graph step by step; values are float32 unless said otherwise.
class graph_builder {
public:
  value_id value(symbolic_shape dims, dtype type = dtype::float32) {
    troupe::value v;
    v.name = fmt::format("v{}", g.values.size());
    v.type = type;
    v.dims = std::move(dims);
    return g.add_value(std::move(v));
  }

  value_id input(symbolic_shape dims) {
    g.inputs.push_back(value(std::move(dims)));
    return g.inputs.back();
  }

  /// A value that is known on the host.
  value_id known(symbolic_shape dims, std::vector<dim> elements) {
    const value_id v = value(std::move(dims), dtype::int64);
    g.values[v].known = std::move(elements);
    return v;
  }

  /// Adds a node with one output of shape `dims`.
  value_id node(const op_def& def, std::vector<value_id> inputs, symbolic_shape dims) {
    return node_to(def, std::move(inputs), value(std::move(dims)));
  }

  value_id node_to(const op_def& def, std::vector<value_id> inputs, value_id output) {
    troupe::node n{.name = fmt::format("n{}", g.nodes.size()), .op_type = std::string(def.name), .domain = "test"};
    n.inputs = std::move(inputs);
    n.outputs = {output};
    n.def = &def;
    g.add_node(std::move(n));
    return output;
  }

  /// Adds a node whose output has a dim that depends on data.
  value_id data_dependent(std::vector<value_id> inputs) {
    const value_id v = value({});
    g.values[v].dims = symbolic_shape{dim::symbol("#" + g.values[v].name + ".0"), 4};
    return node_to(plain_op, std::move(inputs), v);
  }

  std::shared_ptr<const graph> done(std::vector<value_id> outputs) {
    g.outputs = std::move(outputs);
    return std::make_shared<const graph>(g);
  }

  graph g;
};

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

/// GPUs, and a CPU for what they cannot run.
inline std::vector<device_info> gpus_and_fallback(size_t count) {
  std::vector<device_info> devices = gpus(count);
  devices.push_back(cpus(1)[0]);
  devices.back().fallback = true;
  return devices;
}

} // namespace troupe::testing
