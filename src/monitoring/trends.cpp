#include "monitoring/trends.hpp"

#include "monitoring/stream_findings.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace troupe::monitoring {
namespace {

double rows_of(const monitor_sample& s) {
  double rows = 0;
  for (const replica_stats& r : s.queue.replicas)
    rows += static_cast<double>(r.rows);
  return rows;
}

const device_sample* find(const monitor_sample& s, const std::string& device) {
  const auto same = std::find_if(s.devices.begin(), s.devices.end(), [&](const auto& d) { return d.name == device; });
  return same == s.devices.end() ? nullptr : &*same;
}

stretch between(const monitor_sample& a, const monitor_sample& b) {
  stretch s{.middle_s = (a.at_s + b.at_s) / 2,
            .seconds = b.at_s - a.at_s,
            .requests = rise(a.queue.answered, b.queue.answered),
            .runs = rise(a.runs, b.runs),
            .rows = rise(rows_of(a), rows_of(b))};
  for (const device_sample& d : b.devices) {
    const device_sample* known = find(a, d.name);
    const int64_t before = known ? known->stats.busy_ns : 0;
    s.busy_s[d.name] = rise(before, d.stats.busy_ns) * 1e-9;
  }
  return s;
}

using figure = std::function<double(const stretch&)>;

/// Least squares over the stretches, each counting as much as it is long; 0 if that is no more than chance makes: less
/// than three times its standard error.
double slope_of(std::span<const stretch> parts, const figure& value) {
  double weight = 0, time = 0, mean = 0;
  for (const stretch& s : parts) {
    weight += s.seconds;
    time += s.seconds * s.middle_s;
    mean += s.seconds * value(s);
  }
  time /= weight;
  mean /= weight;
  double above = 0, below = 0;
  for (const stretch& s : parts) {
    above += s.seconds * (s.middle_s - time) * (value(s) - mean);
    below += s.seconds * (s.middle_s - time) * (s.middle_s - time);
  }
  if (below <= 0)
    return 0;
  const double slope = above / below;
  double scatter = 0;
  for (const stretch& s : parts) {
    const double off = value(s) - mean - slope * (s.middle_s - time);
    scatter += s.seconds * off * off;
  }
  const double error = std::sqrt(scatter / static_cast<double>(parts.size() - 2) / below);
  return std::abs(slope) > 3 * error ? slope : 0;
}

} // namespace

double stretch::utilisation(const std::string& device) const {
  const auto busy = busy_s.find(device);
  return busy == busy_s.end() || seconds <= 0 ? 0 : std::min(busy->second / seconds, 1.0);
}

double stretch::efficiency() const {
  double sum = 0;
  int used = 0;
  for (const auto& [name, busy] : busy_s)
    if (busy > 0) {
      sum += utilisation(name);
      ++used;
    }
  return used > 0 ? sum / used : 0;
}

void keep_silent(monitor_sample& now, const monitor_sample& before) {
  for (device_sample& d : now.devices)
    if (d.stats.chunks == 0 && d.stats.busy_ns == 0)
      if (const device_sample* known = find(before, d.name))
        d.stats = known->stats;
}

std::vector<stretch> stretches_of(std::span<const monitor_sample> samples) {
  std::vector<stretch> parts;
  for (size_t i = 1; i < samples.size(); ++i)
    if (samples[i].at_s > samples[i - 1].at_s)
      parts.push_back(between(samples[i - 1], samples[i]));
  return parts;
}

stretch sum_of(std::span<const stretch> parts) {
  stretch all;
  for (const stretch& s : parts) {
    all.seconds += s.seconds;
    all.requests += s.requests;
    all.runs += s.runs;
    all.rows += s.rows;
    for (const auto& [name, busy] : s.busy_s)
      all.busy_s[name] += busy;
  }
  return all;
}

std::vector<trend> trends_of(std::span<const stretch> parts) {
  std::vector<trend> trends;
  const stretch all = sum_of(parts);
  if (parts.size() < least_stretches || all.seconds < least_window_s)
    return trends;
  const auto add = [&](std::string name, const figure& value) {
    const double mean = value(all);
    if (mean > 0)
      trends.push_back({.name = std::move(name),
                        .now = value(parts.back()),
                        .mean = mean,
                        .slope = 100 * 60 * slope_of(parts, value) / mean});
  };
  add("requests/s", [](const stretch& s) { return s.requests / s.seconds; });
  add("runs/s", [](const stretch& s) { return s.runs / s.seconds; });
  add("rows/s", [](const stretch& s) { return s.rows / s.seconds; });
  add("parallel efficiency", [](const stretch& s) { return s.efficiency(); });
  for (const auto& [name, busy] : all.busy_s)
    add("utilisation of " + name, [&name = name](const stretch& s) { return s.utilisation(name); });
  return trends;
}

} // namespace troupe::monitoring

namespace troupe {

using namespace monitoring;

monitor_report report_of(std::span<const monitor_sample> samples) {
  monitor_report report{.samples = samples.size()};
  if (samples.empty())
    return report;
  report.last = samples.back();
  const std::vector<stretch> parts = stretches_of(samples);
  const stretch all = sum_of(parts);
  for (const device_sample& d : report.last.devices)
    report.devices.push_back({.name = d.name, .utilisation = all.utilisation(d.name), .stats = d.stats});
  if (parts.empty())
    return report;
  report.window_s = all.seconds;
  report.requests_per_s = all.requests / all.seconds;
  report.runs_per_s = all.runs / all.seconds;
  report.rows_per_s = all.rows / all.seconds;
  report.parallel_efficiency = all.efficiency();
  report.findings = stream_findings(samples);
  report.trends = trends_of(parts);
  return report;
}

} // namespace troupe
