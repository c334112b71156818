#include "plan/plan_key.hpp"

#include "ops/op.hpp"
#include "plan/saved_plan.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

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

void add_ids(hasher& h, const std::vector<value_id>& ids) {
  h.add(std::span<const value_id>(ids));
}

/// What of a graph counts.
enum class aspect : uint8_t {
  content,   // everything that results depend on
  structure, // nodes' names, but not the elements of weights
};

class graph_hasher {
public:
  graph_hasher(hasher& h, aspect what) : h_(h), what_(what) {}

  void add(const graph& g) {
    h_.add(g.values.size());
    for (const value& v : g.values)
      add(v);
    h_.add(g.nodes.size());
    for (const node& n : g.nodes)
      add(n);
    for (const auto* ids : {&g.inputs, &g.outputs, &g.captured}) {
      add_ids(h_, *ids);
      for (value_id v : *ids)
        h_.add(g.values[v].name);
    }
  }

private:
  void add(const value& v) {
    h_.add(v.type);
    h_.add(v.layout);
    h_.add(v.dims.has_value());
    if (v.dims)
      add_dims(h_, *v.dims);
    h_.add(v.constant != nullptr);
    if (v.constant && what_ == aspect::content)
      h_.add(v.constant->key);
    h_.add(v.known.has_value());
    if (v.known)
      add_dims(h_, *v.known);
  }

  void add(const node& n) {
    if (what_ == aspect::structure)
      h_.add(n.name);
    h_.add(n.domain);
    h_.add(n.op_type);
    h_.add(n.def ? n.def->since : int64_t{-1});
    h_.add(n.captures);
    add_ids(h_, n.inputs);
    add_ids(h_, n.outputs);
    h_.add(n.attrs.all().size());
    for (const auto& [name, value] : n.attrs.all()) {
      h_.add(name);
      add(value);
    }
  }

  void add(const attribute& value) {
    h_.add(value.index());
    const auto add_one = [&](const auto& v) {
      using T = std::decay_t<decltype(v)>;
      if constexpr (std::is_same_v<T, tensor>) {
        h_.add(weight::from_tensor(v)->key);
      } else if constexpr (std::is_same_v<T, std::shared_ptr<const graph>>) {
        add(*v);
      } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
        h_.add(v.size());
        for (const std::string& text : v)
          h_.add(text);
      } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
        h_.add(v);
      } else {
        h_.add(std::span<const typename T::value_type>(v));
      }
    };
    std::visit(add_one, value);
  }

  hasher& h_;
  const aspect what_;
};

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

/// All but the total bytes, which no plan looks at.
void add_device(hasher& h, const device_info& device) {
  const auto& [name, kind, description, memory_bytes, total_bytes, units, host_memory, prefers_channels_last, fallback,
               gpu, profile, transfers] = device;
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
  graph_hasher(h, aspect::content).add(g);
  return h.digest();
}

hash128 structure_of(const graph& g) {
  hasher h;
  graph_hasher(h, aspect::structure).add(g);
  return h.digest();
}

hash128 plan_key(const hash128& program, std::span<const device_info> devices, const plan_options& options) {
  hasher h;
  h.add(program);
  h.add(devices.size());
  for (const device_info& d : devices)
    add_device(h, d);
  const auto& [policy, saved, pins, expected, budgets] = options;
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
