#include "monitoring/prometheus.hpp"

#include "base/printable.hpp"
#include "troupe/monitor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace troupe::monitoring {

std::string escaped_label(std::string_view value) {
  std::string text;
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find('\n', begin), value.size());
    for (char c : printable(value.substr(begin, end - begin))) // names of other hosts need not be UTF-8
      if (c == '\\' || c == '"')
        text += {'\\', c};
      else
        text += c;
    text += end < value.size() ? "\\n" : "";
    begin = end + 1;
  }
  return text;
}

void add_metric(std::string& out, std::string_view name, std::string_view type, std::string_view help,
                std::string_view label, const std::vector<metric_sample>& samples) {
  if (samples.empty())
    return;
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  for (const metric_sample& s : samples)
    if (label.empty())
      out += fmt::format("{} {}\n", name, s.value);
    else
      out += fmt::format("{}{{{}=\"{}\"}} {}\n", name, label, escaped_label(s.label), s.value);
}

namespace {

void add_one(std::string& out, std::string_view name, std::string_view type, std::string_view help, double value) {
  add_metric(out, name, type, help, "", {{"", value}});
}

void add_replicas(std::string& out, const stream_stats& queue) {
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       const std::function<double(const replica_stats&)>& value) {
    std::vector<metric_sample> samples;
    for (const replica_stats& r : queue.replicas)
      samples.push_back({fmt::format("{}", fmt::join(r.devices, ",")), value(r)});
    add_metric(out, name, type, help, "replica", samples);
  };
  add("troupe_replica_up", "gauge", "Whether the replica takes work: 1 or 0.",
      [](const replica_stats& r) { return r.living ? 1.0 : 0.0; });
  add("troupe_replica_busy_seconds_total", "counter", "Time in which the replica had a piece.",
      [](const replica_stats& r) { return r.busy_ms / 1e3; });
  add("troupe_replica_pieces_total", "counter", "Pieces that ended well.",
      [](const replica_stats& r) { return static_cast<double>(r.pieces); });
  add("troupe_replica_rows_total", "counter", "Rows of those pieces.",
      [](const replica_stats& r) { return static_cast<double>(r.rows); });
}

void add_devices(std::string& out, const monitor_report& report) {
  const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                       const std::function<double(const device_report&)>& value) {
    std::vector<metric_sample> samples;
    for (const device_report& d : report.devices)
      samples.push_back({d.name, value(d)});
    add_metric(out, name, type, help, "device", samples);
  };
  const auto add_count = [&](std::string_view name, std::string_view type, std::string_view help,
                             int64_t device_stats::*count) {
    add(name, type, help, [count](const device_report& d) { return static_cast<double>(d.stats.*count); });
  };
  add("troupe_device_busy_seconds_total", "counter", "Time in which the device computed.",
      [](const device_report& d) { return static_cast<double>(d.stats.busy_ns) * 1e-9; });
  add("troupe_device_utilisation_ratio", "gauge", "Part of the window in which the device computed.",
      [](const device_report& d) { return d.utilisation; });
  add_count("troupe_device_chunks_total", "counter", "Chunks that the device ran.", &device_stats::chunks);
  add_count("troupe_device_uploaded_bytes_total", "counter", "Bytes of values copied to the device.",
            &device_stats::uploaded_bytes);
  add_count("troupe_device_downloaded_bytes_total", "counter", "Bytes of values copied from the device.",
            &device_stats::downloaded_bytes);
  add_count("troupe_device_weight_bytes", "gauge", "Bytes of weights that the device holds.",
            &device_stats::weight_bytes);
  add_count("troupe_device_pool_reserved_bytes", "gauge", "Bytes that the pools have from system or driver.",
            &device_stats::reserved_bytes);
  add_count("troupe_device_pool_used_bytes", "gauge", "Bytes of those that are handed out.", &device_stats::used_bytes);
  add("troupe_device_pool_fragmentation_ratio", "gauge", "Part of the free bytes outside the largest free piece.",
      [](const device_report& d) { return d.stats.fragmentation(); });
}

} // namespace
} // namespace troupe::monitoring

namespace troupe {

using namespace monitoring;

std::string to_prometheus(const monitor_report& report) {
  std::string out;
  const stream_stats& queue = report.last.queue;
  add_one(out, "troupe_requests_total", "counter", "Requests of the queue that have an answer, failures included.",
          static_cast<double>(queue.answered));
  add_one(out, "troupe_requests_failed_total", "counter", "Requests of the queue that failed.",
          static_cast<double>(queue.failed));
  add_one(out, "troupe_requests_late_total", "counter", "Requests of the queue that their deadline ended.",
          static_cast<double>(queue.late));
  add_one(out, "troupe_runs_total", "counter", "Runs of plans.", static_cast<double>(report.last.runs));
  add_one(out, "troupe_queue_waiting", "gauge", "Requests that wait for a replica.",
          static_cast<double>(queue.waiting));
  add_one(out, "troupe_queue_pieces_in_flight", "gauge", "Pieces that replicas have.",
          static_cast<double>(queue.in_flight));
  add_one(out, "troupe_parallel_efficiency_ratio", "gauge",
          "Mean utilisation over the window of the devices that computed at all.", report.parallel_efficiency);
  add_replicas(out, queue);
  add_devices(out, report);
  return out;
}

} // namespace troupe
