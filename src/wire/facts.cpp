#include "wire/facts.hpp"

#include "base/limits.hpp"
#include "plan/arena_space.hpp"

#include <algorithm>

namespace troupe::wire {
namespace {

bool is_speed(double value) {
  return value > 0; // an infinite one too
}

bool is_time(double value) {
  return value >= 0 && value < 1e9;
}

bool is_sensible(const link_speed& s) {
  return is_speed(s.bytes_per_s) && is_time(s.latency_s);
}

bool is_sensible(const device_profile& p) {
  return std::all_of(p.flops_per_s.begin(), p.flops_per_s.end(), is_speed) && is_speed(p.memory_bytes_per_s) &&
         is_speed(p.input_bytes_per_s) && is_time(p.launch_s) && is_time(p.barrier_s) && is_time(p.chunk_s) &&
         is_time(p.submit_s) && is_time(p.wake_s) && is_sensible(p.up) && is_sensible(p.down);
}

bool is_sensible(const gpu_features& f) {
  constexpr uint32_t most = 1 << 30;
  const auto counts = [](uint32_t n) { return n > 0 && n <= most; };
  return std::has_single_bit(f.subgroup_size) && f.subgroup_size <= 128 && f.max_group_size >= f.subgroup_size &&
         counts(f.max_group_size) && counts(f.shared_bytes) && counts(f.units) &&
         std::all_of(f.max_groups.begin(), f.max_groups.end(), [](uint32_t n) { return n > 0; }) &&
         f.max_binding_bytes > 0 && f.max_binding_bytes < int64_t{1} << 50 && f.binding_alignment > 0 &&
         f.binding_alignment <= arena_alignment && std::has_single_bit(static_cast<uint64_t>(f.binding_alignment));
}

} // namespace

namespace {

/// Whether there is a device of this kind with this memory: GPUs have features, what computes on processors works in
/// the host's memory.
bool is_kind(const device_info& d) {
  switch (d.kind) {
    case device_kind::vulkan: return d.gpu && !d.host_memory;
    case device_kind::cpu:
    case device_kind::slow: return !d.gpu && d.host_memory;
    case device_kind::null: return !d.gpu;
    case device_kind::control: return !d.gpu; // of a plan; no host lends one
  }
  return false;
}

} // namespace

void check_device(const device_info& d) {
  const bool named = !d.name.empty() && d.name.size() <= limits::longest_name &&
                     d.host.size() <= limits::longest_name && d.description.size() <= limits::longest_name;
  constexpr int64_t most_bytes = INT64_MAX / 2; // the sum of two is a number
  const auto can_be = [](int64_t bytes) { return bytes >= 0 && bytes <= most_bytes; };
  if (!is_kind(d))
    fail(errc::invalid_input, "what another host says of its device '{}' cannot be true: no '{}' is like that", d.name,
         to_string(d.kind));
  if (!named || !can_be(d.memory_bytes) || !can_be(d.total_bytes) || d.units < 0 || !is_sensible(d.profile) ||
      (d.gpu && !is_sensible(*d.gpu)))
    fail(errc::invalid_input, "what another host says of its device '{}' cannot be true: names, speeds or limits",
         d.name);
}

} // namespace troupe::wire
