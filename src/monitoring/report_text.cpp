// Reports and findings for people and as JSON.
#include "base/printable.hpp"
#include "troupe/monitor.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::monitoring {
namespace {

using json = nlohmann::ordered_json;

std::string dump(const json& j) {
  return j.dump(-1, ' ', false, json::error_handler_t::replace); // names may be no UTF-8
}

json json_of(std::span<const finding> findings) {
  json rows = json::array();
  for (const finding& f : findings)
    rows.push_back({{"severity", to_string(f.severity)},
                    {"cause", f.cause},
                    {"where", f.where},
                    {"what", f.what},
                    {"lost", f.lost},
                    {"advice", f.advice},
                    {"gain", f.gain}});
  return rows;
}

json json_of(const device_report& d) {
  return {{"device", d.name},
          {"utilisation", d.utilisation},
          {"busy_s", static_cast<double>(d.stats.busy_ns) * 1e-9},
          {"chunks", d.stats.chunks},
          {"pool",
           {{"reserved_bytes", d.stats.reserved_bytes},
            {"used_bytes", d.stats.used_bytes},
            {"largest_gap_bytes", d.stats.largest_gap_bytes},
            {"fragmentation", d.stats.fragmentation()}}}};
}

double percent_of(int64_t part, int64_t all) {
  return all > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(all) : 0;
}

} // namespace
} // namespace troupe::monitoring

namespace troupe {

using namespace monitoring;

std::string_view to_string(severity how) {
  return how == severity::critical ? "critical" : how == severity::warning ? "warning" : "note";
}

std::string to_text(std::span<const finding> findings) {
  std::string text;
  for (const finding& f : findings) {
    text += fmt::format("{}{}: {}", to_string(f.severity), f.where.empty() ? "" : ", " + printable(f.where),
                        printable(f.what));
    if (f.lost > 0)
      text += fmt::format("; costs {:.0f} % of the time", 100 * f.lost);
    text += fmt::format("\n  {}", printable(f.advice));
    text += f.gain > 0 ? fmt::format("; would save {:.0f} %\n", 100 * f.gain) : "\n";
  }
  return text;
}

std::string to_text(const monitor_report& report) {
  std::string text = fmt::format(
      "{} samples in {:.1f} s: {:.2f} requests/s, {:.2f} runs/s, {:.2f} rows/s, parallel efficiency {:.0f} %\n",
      report.samples, report.window_s, report.requests_per_s, report.runs_per_s, report.rows_per_s,
      100 * report.parallel_efficiency);
  text += fmt::format("{:20} {:>7} {:>12} {:>8} {:>11}\n", "device", "busy", "pools", "in use", "fragmented");
  for (const device_report& d : report.devices)
    text += fmt::format("{:20} {:5.0f} % {:>12} {:6.0f} % {:9.0f} %\n", printable(d.name), 100 * d.utilisation,
                        bytes_text(d.stats.reserved_bytes), percent_of(d.stats.used_bytes, d.stats.reserved_bytes),
                        100 * d.stats.fragmentation());
  if (!report.trends.empty())
    text += fmt::format("{:28} {:>10} {:>10} {:>12}\n", "trend", "now", "mean", "a minute");
  for (const trend& t : report.trends)
    text += fmt::format("{:28} {:10.2f} {:10.2f} {:+10.1f} %\n", printable(t.name), t.now, t.mean, t.slope);
  return text + to_text(report.findings);
}

std::string to_json(std::span<const finding> findings) {
  return dump(json_of(findings));
}

std::string to_json(const monitor_report& report) {
  const stream_stats& queue = report.last.queue;
  json j{{"window_s", report.window_s},
         {"samples", report.samples},
         {"requests", queue.answered},
         {"failed", queue.failed},
         {"late", queue.late},
         {"waiting", queue.waiting},
         {"runs", report.last.runs},
         {"requests_per_s", report.requests_per_s},
         {"runs_per_s", report.runs_per_s},
         {"rows_per_s", report.rows_per_s},
         {"parallel_efficiency", report.parallel_efficiency},
         {"devices", json::array()},
         {"findings", json_of(report.findings)},
         {"trends", json::array()}};
  for (const device_report& d : report.devices)
    j["devices"].push_back(json_of(d));
  for (const trend& t : report.trends)
    j["trends"].push_back({{"name", t.name}, {"now", t.now}, {"mean", t.mean}, {"percent_a_minute", t.slope}});
  return dump(j);
}

} // namespace troupe
