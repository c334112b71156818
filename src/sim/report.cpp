// A simulation's report for people and programs.
#include "troupe/simulation.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::sim {
namespace {

using json = nlohmann::json;

constexpr double mib = 1 << 20;
constexpr size_t shown_devices = 32, shown_chunks = 16;

std::string times_of_bound(double makespan, double bound) {
  return bound > 0 ? fmt::format("{:.3f} ms ({:.2f} times)", bound, makespan / bound) : "not computed";
}

} // namespace
} // namespace troupe::sim

namespace troupe {

using namespace sim;

std::string to_text(const simulation_report& r) {
  std::string text =
      fmt::format("makespan {:.3f} ms, {} requests ({} failed), {:.1f} a second, p50 {:.3f} ms, p90 {:.3f}, p99 "
                  "{:.3f}, max {:.3f}\n",
                  r.makespan_ms, r.requests, r.failed, r.requests_per_s, r.p50_ms, r.p90_ms, r.p99_ms, r.max_ms);
  if (r.failed > 0)
    text += fmt::format("first failure: {}\n", r.first_failure);
  if (r.late > 0)
    text += fmt::format("{} requests had no answer by their deadlines\n", r.late);
  text +=
      fmt::format("{} chunks; no schedule of one request is faster than its longest path, {}, or all work spread, {}\n",
                  r.chunks, times_of_bound(r.p50_ms, r.path_bound_ms), times_of_bound(r.p50_ms, r.area_bound_ms));
  text += fmt::format("\n{:<24} {:>8} {:>12} {:>12} {:>10} {:>10} {:>12} {:>8}\n", "device", "busy %", "work ms",
                      "copies ms", "in MiB", "out MiB", "peak MiB", "chunks");
  for (size_t d = 0; d < std::min(r.devices.size(), shown_devices); ++d) {
    const simulated_device& s = r.devices[d];
    text += fmt::format("{:<24} {:>8.1f} {:>12.3f} {:>12.3f} {:>10.1f} {:>10.1f} {:>12.1f} {:>8}\n", s.name,
                        100 * s.utilisation, s.work_ms, s.copy_ms, s.bytes_in / mib, s.bytes_out / mib,
                        static_cast<double>(s.peak_bytes) / mib, s.chunks);
  }
  if (r.devices.size() > shown_devices)
    text += fmt::format("… and {} more; --json lists all\n", r.devices.size() - shown_devices);
  for (const simulated_link& l : r.links)
    text += fmt::format("link {}: {:.1f} MiB, busy {:.1f} %\n", l.name, l.bytes / mib, 100 * l.utilisation);
  text += fmt::format("\ncritical path, {} chunks:\n", r.critical_path.size());
  for (size_t i = 0; i < std::min(r.critical_path.size(), shown_chunks); ++i) {
    const critical_chunk& c = r.critical_path[i];
    text += fmt::format("  {:>10.3f} to {:>10.3f} ms  {:<16} {} nodes{}, after {}\n", c.begin_ms, c.end_ms, c.device,
                        c.nodes, c.first_node.empty() ? "" : " from '" + c.first_node + "'", c.waited_for);
  }
  if (r.critical_path.size() > shown_chunks)
    text += fmt::format("  … and {} more; --json lists all\n", r.critical_path.size() - shown_chunks);
  return text;
}

std::string to_json(const simulation_report& r) {
  json devices = json::array(), links = json::array(), path = json::array();
  for (const simulated_device& d : r.devices)
    devices.push_back({{"name", d.name},
                       {"utilisation", d.utilisation},
                       {"work_ms", d.work_ms},
                       {"copy_ms", d.copy_ms},
                       {"bytes_in", d.bytes_in},
                       {"bytes_out", d.bytes_out},
                       {"memory_bytes", d.memory_bytes},
                       {"peak_bytes", d.peak_bytes},
                       {"chunks", d.chunks}});
  for (const simulated_link& l : r.links)
    links.push_back({{"name", l.name}, {"bytes", l.bytes}, {"utilisation", l.utilisation}});
  for (const critical_chunk& c : r.critical_path)
    path.push_back({{"device", c.device},
                    {"first_node", c.first_node},
                    {"nodes", c.nodes},
                    {"begin_ms", c.begin_ms},
                    {"end_ms", c.end_ms},
                    {"waited_for", c.waited_for}});
  const json j{{"makespan_ms", r.makespan_ms},
               {"requests", r.requests},
               {"failed", r.failed},
               {"first_failure", r.first_failure},
               {"late", r.late},
               {"requests_per_s", r.requests_per_s},
               {"latency_ms", {{"p50", r.p50_ms}, {"p90", r.p90_ms}, {"p99", r.p99_ms}, {"max", r.max_ms}}},
               {"chunks", r.chunks},
               {"plan_chunks", r.plan_chunks},
               {"bounds_ms", {{"path", r.path_bound_ms}, {"area", r.area_bound_ms}}},
               {"devices", std::move(devices)},
               {"links", std::move(links)},
               {"critical_path", std::move(path)},
               {"plan_s", r.plan_s},
               {"simulate_s", r.simulate_s}};
  return j.dump(2, ' ', false, json::error_handler_t::replace);
}

} // namespace troupe
