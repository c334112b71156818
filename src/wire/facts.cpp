#include "wire/facts.hpp"

#include "base/limits.hpp"

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

void check_device(const device_info& d) {
  const bool named = !d.name.empty() && d.name.size() <= limits::longest_name &&
                     d.host.size() <= limits::longest_name && d.description.size() <= limits::longest_name;
  if (!named || d.memory_bytes < 0 || d.total_bytes < 0 || d.units < 0 || !is_sensible(d.profile) ||
      (d.gpu && !is_sensible(*d.gpu)) || (d.gpu && d.host_memory))
    fail(errc::invalid_input, "what another host says of its device '{}' cannot be true: names, speeds or limits",
         d.name);
}

} // namespace troupe::wire
