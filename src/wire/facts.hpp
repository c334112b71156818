// What hosts tell each other about devices and results: plain data as it is in memory, field by field.
#pragma once

#include "device/device.hpp"
#include "run/request.hpp"
#include "wire/archive.hpp"

namespace troupe::wire {

template <>
inline constexpr uint64_t count_of<device_kind> = 5;
template <>
inline constexpr uint64_t count_of<transfer_path> = 4;
template <>
inline constexpr uint64_t count_of<device_timing::work> = 3;

/// errc has no enumerator 0.
template <>
constexpr bool is_enumerator(errc code) {
  return code >= errc::invalid_model && code <= errc::internal;
}

/// Throws `errc::invalid_input` if a device's facts are none that planning can count with: names without end, a speed
/// that is not above 0, a limit of 0.
void check_device(const device_info& device);

template <class Archive>
void visit(Archive& a, link_speed& s) {
  a(s.bytes_per_s, s.latency_s);
}

/// What was measured stays where it is.
template <class Archive>
void visit(Archive& a, device_profile& p) {
  a(p.flops_per_s, p.memory_bytes_per_s, p.launch_s, p.barrier_s, p.chunk_s, p.submit_s, p.wake_s, p.up, p.down,
    p.input_bytes_per_s);
}

template <class Archive>
void visit(Archive& a, gpu_features& f) {
  a(f.subgroup_size, f.max_group_size, f.shared_bytes, f.max_groups, f.max_binding_bytes, f.binding_alignment,
    f.float16, f.int8, f.int64, f.float64, f.subgroup_arithmetic, f.subgroup_shuffle, f.cooperative_matrix,
    f.strong_matrices, f.group_matrices, f.integer_dot, f.byte_matrices, f.units);
}

template <class Archive>
void visit(Archive& a, device_info& d) {
  a(d.name, d.host, d.kind, d.description, d.memory_bytes, d.total_bytes, d.units, d.host_memory,
    d.prefers_channels_last, d.processor, d.fallback, d.gpu, d.profile, d.transfers, d.copies_beside_work, d.peer_set);
  if constexpr (Archive::reads)
    check_device(d);
}

template <class Archive>
void visit(Archive& a, device_stats& s) {
  a(s.chunks, s.busy_ns, s.weight_bytes, s.arena_bytes, s.installed_plans, s.reserved_bytes, s.used_bytes,
    s.largest_gap_bytes, s.recorded_chunks, s.resident_bytes, s.uploaded_bytes, s.downloaded_bytes, s.pending_kernels);
}

template <class Archive>
void visit(Archive& a, failure& f) {
  a(f.code, f.message);
}

/// Times are of the clock of the host that took them.
template <class Archive>
void visit(Archive& a, device_timing& t) {
  a(t.kind, t.id, t.queue, t.begin_ns, t.end_ns, t.bytes, t.kernel);
}

template <class Archive>
void visit(Archive& a, chunk_result& r) {
  a(r.code, r.message, r.busy_ns, r.timings);
}

} // namespace troupe::wire
