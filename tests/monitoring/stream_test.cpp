// Trends and findings from made-up samples of a stream, and the text that Prometheus scrapes.
#include "monitoring/prometheus.hpp"
#include "monitoring/trends.hpp"
#include "support/catch.hpp"
#include "support/small_models.hpp"

#include <nlohmann/json.hpp>

#include <regex>
#include <set>

using namespace troupe;
using namespace troupe::monitoring;
using Catch::Contains;

namespace {

device_sample device_at(const std::string& name, double busy_s) {
  return {name, {.chunks = 1, .busy_ns = static_cast<int64_t>(busy_s * 1e9)}};
}

/// A sample a second: `answered` requests so far, and the time that the device "cpu" was busy so far.
monitor_sample at(double second, uint64_t answered, double busy_s) {
  monitor_sample s{.at_s = second, .runs = answered};
  s.queue.answered = answered;
  s.devices = {device_at("cpu", busy_s)};
  return s;
}

const trend& named(const monitor_report& r, const std::string& name) {
  for (const trend& t : r.trends)
    if (t.name == name)
      return t;
  FAIL("no trend " << name);
  return r.trends.front();
}

/// Two samples, ten seconds apart, of two replicas with 100 pieces of 4 rows each; the arguments are the seconds in
/// which they were busy.
std::vector<monitor_sample> two_samples(double first_busy, double second_busy, size_t waiting = 1) {
  std::vector<monitor_sample> samples{at(0, 0, 0), at(10, 200, 0)};
  for (size_t i = 0; i < 2; ++i) {
    samples[i].queue.waiting = waiting;
    samples[i].queue.rows = "batch";
    for (double busy : {first_busy, second_busy})
      samples[i].queue.replicas.push_back({.devices = {fmt::format("cpu#{}", busy == first_busy ? 0 : 1)},
                                           .pieces = i * 100,
                                           .rows = static_cast<int64_t>(i) * 400,
                                           .busy_ms = static_cast<double>(i) * busy * 1e3,
                                           .row_ms = 10});
  }
  return samples;
}

std::set<std::string> causes(const std::vector<finding>& found) {
  std::set<std::string> names;
  for (const finding& f : found)
    names.insert(f.cause);
  return names;
}

} // namespace

TEST_CASE("rates over a window, and trends if there are enough samples", "[monitor][C8][C9]") {
  std::vector<monitor_sample> samples;
  for (int second = 0; second <= 15; second += 3)
    samples.push_back(at(second, static_cast<uint64_t>(100 * second), 0.4 * second));
  const monitor_report steady = report_of(samples);
  CHECK(steady.window_s == Approx(15));
  CHECK(steady.requests_per_s == Approx(100));
  CHECK(steady.parallel_efficiency == Approx(0.4));
  REQUIRE(steady.devices.size() == 1);
  CHECK(steady.devices[0].utilisation == Approx(0.4));
  CHECK(named(steady, "requests/s").mean == Approx(100));
  CHECK(named(steady, "requests/s").slope == Approx(0).margin(1e-9));
  CHECK(named(steady, "utilisation of cpu").now == Approx(0.4));
  const std::span<const monitor_sample> all = samples;
  CHECK(report_of(all.first(least_stretches)).trends.empty());
  CHECK_FALSE(report_of(all.first(least_stretches + 1)).trends.empty());
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i].at_s = static_cast<double>(i);
  CHECK(report_of(samples).requests_per_s == Approx(300));
  CHECK(report_of(samples).trends.empty()); // five seconds
  CHECK(report_of(all.first(1)).requests_per_s == 0);
  CHECK(report_of({}).samples == 0);
}

TEST_CASE("a trend is the slope in per cent of the mean a minute", "[monitor][C9]") {
  std::vector<monitor_sample> samples{at(0, 0, 0)};
  for (int second = 1; second <= 10; ++second) // 91, 92 … 100 requests a second
    samples.push_back(at(second, samples.back().queue.answered + 90 + static_cast<uint64_t>(second), 0.1 * second));
  const monitor_report r = report_of(samples);
  const trend& t = named(r, "requests/s");
  CHECK(t.now == Approx(100));
  CHECK(t.mean == Approx(95.5));
  CHECK(t.slope == Approx(100 * 60 / 95.5));
  samples.erase(samples.begin() + 4); // stretches count as much as they are long
  CHECK(named(report_of(samples), "requests/s").mean == Approx(95.5));
  CHECK(named(report_of(samples), "requests/s").slope == Approx(100 * 60 / 95.5).epsilon(0.02));
}

TEST_CASE("a figure that goes up and down by chance has no slope", "[monitor][C9]") {
  std::vector<monitor_sample> samples{at(0, 0, 0)};
  for (int second = 1; second <= 12; ++second)
    samples.push_back(at(second, samples.back().queue.answered + (second % 3 == 0 ? 130 : 90), 0.1 * second));
  const monitor_report r = report_of(samples);
  CHECK(named(r, "requests/s").mean == Approx(1240.0 / 12));
  CHECK(named(r, "requests/s").slope == 0);
}

TEST_CASE("counters that begin again, and devices that are silent or new", "[monitor][C9]") {
  std::vector<monitor_sample> samples{at(0, 0, 5), at(1, 10, 5.5), at(2, 20, 0.25)}; // opened again
  CHECK(report_of(samples).devices[0].utilisation == Approx(0.375));
  samples[2].devices.push_back(device_at("far/cpu", 0.5));
  CHECK(report_of(samples).devices[1].utilisation == Approx(0.25));
  monitor_sample silent = at(3, 30, 0);
  silent.devices[0].stats = {};
  keep_silent(silent, samples[1]);
  CHECK(silent.devices[0].stats.busy_ns == 5'500'000'000);
  monitor_sample later = at(3, 30, 7);
  keep_silent(later, samples[1]);
  CHECK(later.devices[0].stats.busy_ns == 7'000'000'000);
}

TEST_CASE("efficiency is that of the devices that were busy", "[monitor][C8]") {
  std::vector<monitor_sample> samples{at(0, 0, 0), at(10, 0, 8)};
  for (monitor_sample& s : samples) {
    s.devices.push_back(device_at("gpu", s.at_s / 10 * 4));
    s.devices.push_back(device_at("idle", 0));
  }
  CHECK(report_of(samples).parallel_efficiency == Approx(0.6));
}

TEST_CASE("a stream that is well fed has no findings", "[monitor][C9]") {
  CHECK(report_of(two_samples(7, 7, 0)).findings.empty());
  CHECK(report_of(two_samples(0, 0, 5)).findings.empty()); // nothing worked
}

TEST_CASE("a queue that is always full, or always empty", "[monitor][C9]") {
  const auto full = report_of(two_samples(9.5, 9.4, 6)).findings;
  REQUIRE(causes(full) == std::set<std::string>{"queue_full"});
  CHECK_THAT(full[0].what, Contains("6 to 6 requests wait") && Contains("300.0 ms each"));
  CHECK(full[0].severity == severity::warning);
  auto watched = two_samples(9.5, 9.4, 0); // before the first request and after the last none waits
  watched.insert(watched.begin() + 1, at(5, 100, 0));
  watched[1].queue.waiting = 6;
  CHECK(causes(report_of(watched).findings) == std::set<std::string>{"queue_full"});
  const auto empty = report_of(two_samples(2.5, 2.4, 0)).findings;
  REQUIRE(causes(empty) == std::set<std::string>{"queue_empty"});
  CHECK(empty[0].gain == Approx(0.755)); // the replicas could do four times as much
  CHECK_THAT(empty[0].advice, Contains("--in-flight"));
}

TEST_CASE("requests that their deadline ended are told", "[monitor][C9]") {
  auto samples = two_samples(7, 7);
  samples[0].queue.late = 3; // before
  samples[1].queue.late = 43;
  const auto found = report_of(samples).findings;
  REQUIRE(causes(found) == std::set<std::string>{"requests_late"});
  CHECK(found[0].what == "40 of 200 requests were not answered by their deadline");
  CHECK(found[0].severity == severity::warning);
  CHECK_THAT(to_prometheus(report_of(samples)), Contains("troupe_requests_late_total 43"));
}

TEST_CASE("a replica that is out", "[monitor][C9]") {
  auto samples = two_samples(7, 7.1);
  samples[1].queue.replicas[1].living = false;
  samples[1].queue.replicas[1].why_not = "the driver is gone";
  samples[1].queue.replicas[1].row_ms = 30; // a third of the other's speed
  const auto found = report_of(samples).findings;
  REQUIRE(causes(found) == std::set<std::string>{"replica_lost"});
  CHECK(found[0].severity == severity::critical);
  CHECK(found[0].where == "cpu#1");
  CHECK(found[0].gain == Approx(0.25));
  CHECK_THAT(found[0].what, Contains("the driver is gone"));
}

TEST_CASE("a replica that idles while another works", "[monitor][C9]") {
  const auto found = report_of(two_samples(9, 3)).findings;
  REQUIRE(causes(found) == std::set<std::string>{"replica_idle"});
  CHECK(found[0].where == "cpu#1");
  CHECK(found[0].gain == Approx(0.5)); // busy for 9 s, it would do 1200 rows: 1600 with the other's instead of 800
  CHECK_THAT(found[0].advice, Contains("--strategy work-stealing"));
}

TEST_CASE("first pieces that are under way say nothing of replicas yet", "[monitor][C9]") {
  auto samples = two_samples(9, 1);
  for (replica_stats& r : samples[1].queue.replicas)
    r = {.devices = r.devices, .busy_ms = r.busy_ms}; // no row has ended; nothing is predicted of them
  CHECK_FALSE(causes(report_of(samples).findings).contains("replica_idle"));
}

TEST_CASE("pieces that are too small", "[monitor][C9]") {
  auto samples = two_samples(7, 7.1);
  for (replica_stats& r : samples[1].queue.replicas)
    r.piece_ms = 40; // as much as its four rows
  const auto found = report_of(samples).findings;
  REQUIRE(causes(found) == std::set<std::string>{"small_pieces"});
  for (replica_stats& r : samples[1].queue.replicas) // as figures say that do not account for the time
    r = {.devices = r.devices, .pieces = r.pieces, .rows = r.rows, .busy_ms = r.busy_ms, .row_ms = 1, .piece_ms = 4};
  CHECK(report_of(samples).findings.empty());
  CHECK(found[0].gain == Approx(1 - (40 + 80) / (2 * (40.0 + 40)))); // eight rows at once
  CHECK_THAT(found[0].advice, Contains("--max-batch 8"));
  samples[1].queue.rows.clear(); // requests run whole
  CHECK(report_of(samples).findings.empty());
}

TEST_CASE("a report as text and as JSON", "[monitor][C7][C8][C9]") {
  auto samples = two_samples(9, 3);
  samples[1].devices[0].stats.reserved_bytes = 4 << 20;
  samples[1].devices[0].stats.used_bytes = 1 << 20;
  samples[1].devices[0].stats.largest_gap_bytes = 3 << 19;
  const monitor_report r = report_of(samples);
  const std::string text = to_text(r);
  CHECK_THAT(text, Contains("20.00 requests/s") && Contains("4.0 MiB") && Contains("25 %") && Contains("50 %"));
  CHECK_THAT(text, Contains("critical, cpu#1: busy 30 %"));
  const auto j = nlohmann::json::parse(to_json(r));
  CHECK(j["requests_per_s"] == Approx(20));
  CHECK(j["rows_per_s"] == Approx(80));
  CHECK(j["devices"][0]["pool"]["fragmentation"] == Approx(0.5));
  CHECK(j["findings"][0]["cause"] == "replica_idle");
  CHECK(j["findings"][0]["gain"] == Approx(0.5));
}

namespace {

/// Reads a text as Prometheus would: samples by name and label, types by name. Fails at a line that is not of the
/// format.
struct scraped {
  std::map<std::string, double> values; // "name" or "name{value of the label}"
  std::map<std::string, std::string> types;
};

std::string unescaped(const std::string& label) {
  std::string text;
  for (size_t i = 0; i < label.size(); ++i)
    if (label[i] != '\\')
      text += label[i];
    else
      text += label[++i] == 'n' ? '\n' : label[i];
  return text;
}

scraped scrape(const std::string& text) {
  static const std::regex help("# HELP ([a-z_]+) [^\\\\]+"), type("# TYPE ([a-z_]+) (counter|gauge)");
  static const std::regex sample("([a-z_]+)(\\{([a-z]+)=\"((?:[^\"\\\\]|\\\\[\\\\\"n])*)\"\\})? ([-+.e0-9]+)");
  scraped s;
  std::istringstream lines(text);
  std::smatch m;
  std::string described;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, m, help)) {
      described = m[1];
    } else if (std::regex_match(line, m, type)) {
      CHECK(m[1] == described);
      CHECK(s.types.emplace(m[1], m[2]).second);
    } else if (std::regex_match(line, m, sample)) {
      CHECK(s.types.contains(m[1]));
      const std::string key = m[2].matched ? m[1].str() + "{" + unescaped(m[4]) + "}" : m[1].str();
      CHECK(s.values.emplace(key, std::stod(m[5])).second);
    } else {
      FAIL("no line of the format: " << line);
    }
  CHECK(text.ends_with('\n'));
  return s;
}

} // namespace

TEST_CASE("Prometheus reads what a report says", "[monitor][C7][C8][C9]") {
  auto samples = two_samples(9, 3, 2);
  samples[1].queue.failed = 5;
  samples[1].queue.replicas[1].living = false;
  samples[1].devices = {device_at("cpu", 2.5), device_at("odd \"name\"\\\nwith lines", 1)};
  samples[1].devices[0].stats.reserved_bytes = 8000;
  samples[1].devices[0].stats.used_bytes = 6000;
  samples[1].devices[0].stats.largest_gap_bytes = 500;
  const scraped s = scrape(to_prometheus(report_of(samples)));
  CHECK(s.values.at("troupe_requests_total") == 200);
  CHECK(s.values.at("troupe_requests_failed_total") == 5);
  CHECK(s.values.at("troupe_queue_waiting") == 2);
  CHECK(s.values.at("troupe_replica_busy_seconds_total{cpu#0}") == 9);
  CHECK(s.values.at("troupe_replica_up{cpu#1}") == 0);
  CHECK(s.values.at("troupe_device_busy_seconds_total{cpu}") == 2.5);
  CHECK(monitoring::escaped_label("far/\xff") == "far/\\\\xff"); // no UTF-8: the format asks for it
  CHECK(s.values.at("troupe_device_busy_seconds_total{odd \"name\"\\\nwith lines}") == 1);
  CHECK(s.values.at("troupe_device_pool_reserved_bytes{cpu}") == 8000);
  CHECK(s.values.at("troupe_device_pool_used_bytes{cpu}") == 6000);
  CHECK(s.values.at("troupe_device_pool_fragmentation_ratio{cpu}") == 0.75);
  for (const auto& [name, type] : s.types)
    CHECK((type == "counter") == name.ends_with("_total"));
  CHECK(scrape(to_prometheus({})).values.at("troupe_requests_total") == 0);
}

TEST_CASE("a monitor watches an engine and a session", "[monitor][C7][C8][C9][actors]") {
  engine e({.devices = {"cpu*2"}});
  test::graph_builder b;
  b.output(b.op("Relu", {b.input("x", {2, 3})}));
  const session s = e.load(b.g);
  monitor watch(e, s);
  CHECK(watch.report().window_s == 0);
  for (int i = 0; i < 6; ++i) {
    s.submit({{"x", test::floats({2, 3}, {-1, 2, 3, 4, 5, 6})}}).get();
    watch.sample();
  }
  const monitor_report r = watch.report();
  CHECK(r.samples == 7);
  CHECK(r.window_s > 0);
  CHECK(r.last.queue.answered == 6);
  CHECK(r.requests_per_s * r.window_s == Approx(6));
  REQUIRE(r.devices.size() == 2);
  CHECK(r.devices[0].name == "cpu");
  CHECK(r.devices[0].stats.chunks >= 6);
  CHECK_THROWS_AS(monitor(e, s, {.window = std::chrono::milliseconds(0)}), error);
  monitor brief(e, s, {.window = std::chrono::milliseconds(1)});
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(3)) {
    }
    brief.sample();
  }
  CHECK(brief.report().samples == 2); // the newest
}
