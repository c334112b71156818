// Plain data of troupe as dicts, by the names of the C++ members.
#include "options.hpp"
#include "session.hpp"

#include <pybind11/stl.h>

namespace troupe::python {
namespace {

py::dict to_dict(const cache_stats& c) {
  return py::dict(py::arg("hits") = c.hits, py::arg("misses") = c.misses, py::arg("evictions") = c.evictions);
}

py::dict to_dict(const replica_stats& r) {
  return py::dict(py::arg("devices") = r.devices, py::arg("living") = r.living, py::arg("why_not") = r.why_not,
                  py::arg("pieces") = r.pieces, py::arg("rows") = r.rows, py::arg("busy_ms") = r.busy_ms,
                  py::arg("row_ms") = r.row_ms, py::arg("piece_ms") = r.piece_ms,
                  py::arg("predicted_row_ms") = r.predicted_row_ms);
}

} // namespace

py::dict to_dict(const run_stats& s) {
  return py::dict(py::arg("total_ms") = s.total_ms, py::arg("plan_cached") = s.plan_cached,
                  py::arg("chunks") = s.chunks, py::arg("fetched_bytes") = s.fetched_bytes,
                  py::arg("lost_devices") = s.lost_devices, py::arg("repeated_steps") = s.repeated_steps,
                  py::arg("busy_ms") = std::map<std::string, double>(s.busy_ms.begin(), s.busy_ms.end()),
                  py::arg("parallel_efficiency") = s.parallel_efficiency());
}

py::dict to_dict(const session_stats& s) {
  return py::dict(py::arg("runs") = s.runs, py::arg("plans") = to_dict(s.plans),
                  py::arg("bound_plans") = to_dict(s.bound_plans), py::arg("layouts") = to_dict(s.layouts),
                  py::arg("load_ms") = s.load_ms, py::arg("rewrite_ms") = s.rewrite_ms, py::arg("plan_ms") = s.plan_ms);
}

py::dict to_dict(const stream_stats& s) {
  py::list replicas;
  for (const replica_stats& r : s.replicas)
    replicas.append(to_dict(r));
  return py::dict(py::arg("answered") = s.answered, py::arg("failed") = s.failed, py::arg("late") = s.late,
                  py::arg("waiting") = s.waiting, py::arg("in_flight") = s.in_flight, py::arg("rows") = s.rows,
                  py::arg("whole_because") = s.whole_because, py::arg("replicas") = replicas);
}

py::dict to_dict(const strategy_choice& c) {
  return py::dict(py::arg("strategy") = word_of(c.strategy), py::arg("policy") = word_of(c.policy),
                  py::arg("devices") = c.devices, py::arg("micro_batch") = c.micro_batch,
                  py::arg("latency_ms") = c.latency_ms, py::arg("requests_per_s") = c.requests_per_s,
                  py::arg("memory_bytes") = c.memory_bytes, py::arg("has_plan") = c.has_plan,
                  py::arg("possible") = c.possible, py::arg("why") = c.why);
}

py::dict to_dict(const device_summary& d) {
  return py::dict(py::arg("name") = d.name, py::arg("kind") = d.kind, py::arg("description") = d.description,
                  py::arg("memory_bytes") = d.memory_bytes, py::arg("total_bytes") = d.total_bytes,
                  py::arg("fallback") = d.fallback);
}

py::dict to_dict(const device_stats& s) {
  return py::dict(py::arg("chunks") = s.chunks, py::arg("busy_ns") = s.busy_ns,
                  py::arg("weight_bytes") = s.weight_bytes, py::arg("arena_bytes") = s.arena_bytes,
                  py::arg("installed_plans") = s.installed_plans, py::arg("reserved_bytes") = s.reserved_bytes,
                  py::arg("used_bytes") = s.used_bytes, py::arg("largest_gap_bytes") = s.largest_gap_bytes,
                  py::arg("recorded_chunks") = s.recorded_chunks, py::arg("resident_bytes") = s.resident_bytes,
                  py::arg("uploaded_bytes") = s.uploaded_bytes, py::arg("downloaded_bytes") = s.downloaded_bytes,
                  py::arg("pending_kernels") = s.pending_kernels);
}

py::dict to_dict(const host_summary& h) {
  return py::dict(py::arg("name") = h.name, py::arg("address") = h.address, py::arg("lost") = h.lost,
                  py::arg("problem") = h.problem, py::arg("version") = h.version,
                  py::arg("round_trip_s") = h.round_trip_s, py::arg("to_bytes_per_s") = h.to_bytes_per_s,
                  py::arg("from_bytes_per_s") = h.from_bytes_per_s, py::arg("load_bytes") = h.load_bytes,
                  py::arg("loaded_bytes") = h.loaded_bytes);
}

} // namespace troupe::python
