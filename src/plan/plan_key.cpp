#include "plan/plan_key.hpp"

#include "cost/node_times.hpp"
#include "plan/place/policy_library.hpp"
#include "plan/saved_plan.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

/// The bindings name every field, so that a new one does not compile before it is hashed.
void add_features(hasher& h, const gpu_features& gpu) {
  const auto& [subgroup_size, max_group_size, shared_bytes, max_groups, max_binding_bytes, binding_alignment, float16,
               int8, int64, float64, subgroup_arithmetic, subgroup_shuffle, cooperative_matrix, strong_matrices,
               group_matrices, integer_dot, byte_matrices, units] = gpu;
  for (uint32_t limit :
       {subgroup_size, max_group_size, shared_bytes, max_groups[0], max_groups[1], max_groups[2], units})
    h.add(limit);
  h.add(max_binding_bytes);
  h.add(binding_alignment);
  for (bool feature : {float16, int8, int64, float64, subgroup_arithmetic, subgroup_shuffle, cooperative_matrix,
                       strong_matrices, group_matrices, integer_dot, byte_matrices})
    h.add(feature);
}

/// Keeps the four highest bits: samples of free memory that differ by noise give the same plan.
int64_t quantised(int64_t bytes) {
  const auto bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(bytes, 0))));
  const int drop = std::max(0, bits - 4);
  return bytes >> drop << drop;
}

void add_profile(hasher& h, const device_profile& profile) {
  const auto& [flops_per_s, memory_bytes_per_s, launch_s, barrier_s, chunk_s, submit_s, wake_s, up, down,
               input_bytes_per_s, measured] = profile;
  for (double speed : flops_per_s)
    h.add(speed);
  for (double v : {memory_bytes_per_s, launch_s, barrier_s, chunk_s, submit_s, wake_s, up.bytes_per_s, up.latency_s,
                   down.bytes_per_s, down.latency_s, input_bytes_per_s})
    h.add(v);
  h.add(measured != nullptr);
  if (measured)
    h.add(measured->key());
}

/// All but the total bytes and the incarnation, which no plan looks at.
void add_device(hasher& h, const device_info& device) {
  const auto& [name, incarnation, host, kind, description, memory_bytes, total_bytes, units, host_memory,
               prefers_channels_last, processor, fallback, gpu, profile, network_in, network_out, transfers,
               copies_beside_work, peer_set] = device;
  h.add(name);
  h.add(host);
  h.add(kind);
  h.add(description);
  h.add(quantised(memory_bytes));
  h.add(units);
  h.add(host_memory);
  h.add(prefers_channels_last);
  h.add(processor);
  h.add(fallback);
  h.add(gpu.has_value());
  if (gpu)
    add_features(h, *gpu);
  add_profile(h, profile);
  for (double v : {network_in.bytes_per_s, network_in.latency_s, network_out.bytes_per_s, network_out.latency_s})
    h.add(v);
  h.add(transfers);
  h.add(copies_beside_work);
  h.add(peer_set);
}

} // namespace

hash128 plan_key(const hash128& program, std::span<const device_info> devices, const plan_options& options) {
  hasher h;
  h.add(program);
  h.add(devices.size());
  for (const device_info& d : devices)
    add_device(h, d);
  const auto& [policy, saved, pins, expected, budgets, values_stay, plugin, split_along] = options;
  h.add(policy);
  h.add(saved != nullptr);
  if (saved)
    h.add(saved->key);
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
  h.add(values_stay);
  h.add(budgets.size());
  for (int64_t bytes : budgets)
    h.add(quantised(bytes));
  h.add(split_along.has_value());
  h.add(split_along.value_or(0));
  if (plugin) {
    h.add(plugin->name());
    h.add(plugin->hash());
  }
  return h.digest();
}

} // namespace troupe
