#include "plan/plan_key.hpp"

#include "ops/op.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

void add_ids(hasher& h, const std::vector<value_id>& ids) {
  h.add(std::span<const value_id>(ids));
}

void add_attribute(hasher& h, const attribute& value) {
  h.add(value.index());
  const auto add = [&](const auto& v) {
    using T = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<T, tensor>) {
      h.add(weight::from_tensor(v)->key);
    } else if constexpr (std::is_same_v<T, std::shared_ptr<const graph>>) {
      h.add(hash_of(*v));
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      h.add(v.size());
      for (const std::string& text : v)
        h.add(text);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      h.add(v);
    } else {
      h.add(std::span<const typename T::value_type>(v));
    }
  };
  std::visit(add, value);
}

void add_dims(hasher& h, const std::vector<dim>& dims) {
  h.add(dims.size());
  for (const dim& d : dims) {
    h.add(d.is_constant());
    if (d.is_constant())
      h.add(d.constant());
    else
      h.add(d.to_string());
  }
}

void add_value(hasher& h, const value& v) {
  h.add(v.type);
  h.add(v.layout);
  h.add(v.dims.has_value());
  if (v.dims)
    add_dims(h, *v.dims);
  h.add(v.constant != nullptr);
  if (v.constant)
    h.add(v.constant->key);
  h.add(v.known.has_value());
  if (v.known)
    add_dims(h, *v.known);
}

void add_node(hasher& h, const node& n) {
  h.add(n.domain);
  h.add(n.op_type);
  h.add(n.def ? n.def->since : int64_t{-1});
  h.add(n.captures);
  add_ids(h, n.inputs);
  add_ids(h, n.outputs);
  h.add(n.attrs.all().size());
  for (const auto& [name, value] : n.attrs.all()) {
    h.add(name);
    add_attribute(h, value);
  }
}

/// The bindings name every field, so that a new one does not compile before it is hashed.
void add_features(hasher& h, const gpu_features& gpu) {
  const auto& [subgroup_size, max_group_size, shared_bytes, max_groups, max_binding_bytes, binding_alignment, float16,
               int8, int64, subgroup_arithmetic, cooperative_matrix, units] = gpu;
  for (uint32_t limit :
       {subgroup_size, max_group_size, shared_bytes, max_groups[0], max_groups[1], max_groups[2], units})
    h.add(limit);
  h.add(max_binding_bytes);
  h.add(binding_alignment);
  for (bool feature : {float16, int8, int64, subgroup_arithmetic, cooperative_matrix})
    h.add(feature);
}

/// Keeps the four highest bits: samples of free memory that differ by noise give the same plan.
int64_t quantised(int64_t bytes) {
  const auto bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(bytes, 0))));
  const int drop = std::max(0, bits - 4);
  return bytes >> drop << drop;
}

void add_profile(hasher& h, const device_profile& profile) {
  const auto& [flops_per_s, memory_bytes_per_s, launch_s, barrier_s, chunk_s, up, down] = profile;
  for (double speed : flops_per_s)
    h.add(speed);
  for (double v : {memory_bytes_per_s, launch_s, barrier_s, chunk_s, up.bytes_per_s, up.latency_s, down.bytes_per_s,
                   down.latency_s})
    h.add(v);
}

void add_device(hasher& h, const device_info& device) {
  const auto& [name, kind, description, memory_bytes, units, host_memory, prefers_channels_last, fallback, gpu, profile,
               transfers] = device;
  h.add(name);
  h.add(kind);
  h.add(description);
  h.add(quantised(memory_bytes));
  h.add(units);
  h.add(host_memory);
  h.add(prefers_channels_last);
  h.add(fallback);
  h.add(gpu.has_value());
  if (gpu)
    add_features(h, *gpu);
  add_profile(h, profile);
  h.add(transfers);
}

} // namespace

hash128 hash_of(const graph& g) {
  hasher h;
  h.add(g.values.size());
  for (const value& v : g.values)
    add_value(h, v);
  h.add(g.nodes.size());
  for (const node& n : g.nodes)
    add_node(h, n);
  for (const auto* ids : {&g.inputs, &g.outputs, &g.captured}) {
    add_ids(h, *ids);
    for (value_id v : *ids)
      h.add(g.values[v].name);
  }
  return h.digest();
}

hash128 plan_key(const hash128& program, std::span<const device_info> devices, const plan_options& options) {
  hasher h;
  h.add(program);
  h.add(devices.size());
  for (const device_info& d : devices)
    add_device(h, d);
  const auto& [policy, pins, expected, budgets] = options;
  h.add(policy);
  h.add(pins.size());
  for (const placement_pin& p : pins) {
    h.add(p.pattern);
    h.add(p.device);
  }
  h.add(expected.size());
  for (const auto& [name, value] : expected) {
    h.add(name);
    h.add(value);
  }
  h.add(budgets.size());
  for (int64_t bytes : budgets)
    h.add(quantised(bytes));
  return h.digest();
}

hash128 bound_key(const hash128& plan, uint32_t segment, const bindings& values) {
  hasher h;
  h.add(plan);
  h.add(segment);
  for (const auto& [name, value] : values) {
    h.add(name);
    h.add(value);
  }
  return h.digest();
}

} // namespace troupe
