// Timelines of made-up runs: counters, the critical path, figures, and differences between two of them.
#include "trace/timeline.hpp"

#include "actors/engine_access.hpp"
#include "pages/trace_page.hpp"
#include "plan/bind/memory.hpp"
#include "support/catch.hpp"
#include "support/small_models.hpp"
#include "trace/trace_diff.hpp"
#include "trace/trace_summary.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::test;

namespace {

const tensor halves = floats({2, 300}, std::vector<float>(600, 0.5F));

/// Sigmoid → Concat with itself → Relu → Sigmoid: values of 2,400 and 4,800 bytes.
graph growing() {
  graph_builder b;
  const value_id x = b.input("x", {2, 300});
  const value_id a = b.op("Sigmoid", {x});
  const value_id c = b.op("Concat", {a, a}, attrs_of({{"axis", int64_t{1}}}));
  b.output(b.op("Sigmoid", {b.op("Transpose", {c})}));
  return b.g;
}

run_trace traced(const graph& g, const char* devices, placement_policy policy = placement_policy::single) {
  engine e({.devices = {devices}});
  return *e.load(g, {.policy = policy, .fuse = false}).run({{"x", halves}}, {.trace = true}).trace;
}

const timeline_counter& counter(const timeline& t, const std::string& lane, const std::string& name) {
  const auto found = std::find_if(t.counters.begin(), t.counters.end(), [&](const timeline_counter& c) {
    return t.lanes[c.lane].name == lane && c.name == name;
  });
  REQUIRE(found != t.counters.end());
  return *found;
}

int64_t most(const timeline_counter& c, size_t series) {
  int64_t value = 0;
  for (const counter_point& p : c.points)
    value = std::max(value, p.values[series]);
  return value;
}

/// Two devices: a ends at 100, b waits for it until 120 and ends at 200, c waits for nothing on a.
timeline two_devices() {
  timeline t{.end_ns = 210, .lanes = {{"a", ""}, {"b", "far"}}, .tracks = {{0, "a"}, {0, "a, queue 0"}, {1, "b"}}};
  const auto chunk = [](uint32_t track, int64_t begin, int64_t end, int64_t id) {
    return timeline_bar{
        .track = track, .kind = bar_kind::chunk, .name = "chunk", .begin_ns = begin, .end_ns = end, .chunk = id};
  };
  t.bars = {chunk(0, 0, 100, 0), chunk(2, 120, 200, 1), chunk(0, 100, 150, 2), chunk(2, 10, 30, 3)};
  t.bars.push_back(
      {.track = 1, .kind = bar_kind::node, .name = "n", .begin_ns = 5, .end_ns = 90, .op = "Conv", .chunk = 0});
  t.bars.push_back(
      {.track = 1, .kind = bar_kind::node, .name = "m", .begin_ns = 100, .end_ns = 140, .op = "Relu", .chunk = 2});
  t.edges = {{0, 1}, {3, 1}};
  return t;
}

} // namespace

TEST_CASE("live bytes are those of the arena that hold a value", "[trace][plan]") {
  const run_trace trace = traced(growing(), "cpu");
  const plan& p = *trace.source;
  const bound_plan_ptr bound = bind_segment(trace.source, 0, {});
  const device_memory& memory = bound->layout->memory[0];
  const std::vector<int64_t> live = live_bytes(p.lifetimes[0], memory, bound->layout->bytes);
  CHECK(live.size() == p.lifetimes[0].positions);
  CHECK(*std::max_element(live.begin(), live.end()) == memory.peak_bytes);
  CHECK(live.back() == 0);
}

TEST_CASE("memory is counted as the bound plan has it, at the times of the trace", "[trace]") {
  const run_trace trace = traced(growing(), "cpu");
  REQUIRE(trace.memory.size() == 1);
  const timeline t = timeline_of(trace);
  check(t);
  const timeline_counter& memory = counter(t, "cpu", "memory");
  CHECK(memory.series == std::vector<std::string>{"weights", "values", "leaving"});
  CHECK(most(memory, 1) == *std::max_element(trace.memory[0].live[0].begin(), trace.memory[0].live[0].end()));
  CHECK(most(memory, 1) > 4800);
  CHECK(most(memory, 2) == 4800); // the output
  CHECK(memory.points.back().values[1] == 0);
  const auto last =
      std::find_if(t.bars.rbegin(), t.bars.rend(), [](const timeline_bar& b) { return b.kind == bar_kind::node; });
  const auto leaves =
      std::find_if(memory.points.begin(), memory.points.end(), [](const counter_point& p) { return p.values[2] > 0; });
  REQUIRE(leaves != memory.points.end());
  CHECK(leaves->at_ns == last->begin_ns);
}

TEST_CASE("a queue is as deep as chunks are sent and not answered", "[trace]") {
  run_trace trace = traced(growing(), "cpu*2", placement_policy::round_robin);
  const timeline t = timeline_of(trace);
  for (const char* device : {"cpu", "cpu#1"}) {
    const timeline_counter& queue = counter(t, device, "queue");
    CHECK(queue.points.front().values[0] == 0);
    CHECK(queue.points.back().values[0] == 0);
    CHECK(most(queue, 0) >= 1);
  }
  REQUIRE(trace.chunks.size() >= 2);
  for (chunk_trace& c : trace.chunks) {
    c.sent_ns = trace.begin_ns + 10;
    c.ended_ns = trace.begin_ns + 20 + c.chunk;
  }
  const timeline together = timeline_of(trace);
  const timeline_counter& queue = counter(together, "cpu", "queue");
  const auto own = std::count_if(trace.chunks.begin(), trace.chunks.end(),
                                 [&](const chunk_trace& c) { return trace.source->chunks[c.chunk].device == 0; });
  CHECK(most(queue, 0) == own);
}

TEST_CASE("the critical path has the chunk that each chunk waited for last", "[trace]") {
  const timeline t = two_devices();
  CHECK(critical_path(t) == std::vector<uint32_t>{0, 1, 4});
  timeline late = t;
  late.bars[3].end_ns = 115; // on b's own track, after a's chunk
  CHECK(critical_path(late) == std::vector<uint32_t>{1, 3});
  CHECK(critical_path({}).empty());
  timeline circle = t;
  circle.edges.push_back({1, 0});
  CHECK(critical_path(circle) == std::vector<uint32_t>{0, 1, 4});
}

TEST_CASE("time counts once where a node and a move of the critical path last at once", "[trace]") {
  timeline t = two_devices();
  t.bars.push_back({.track = 1, .kind = bar_kind::upload, .name = "v", .begin_ns = 60, .end_ns = 98, .chunk = 0});
  const trace_summary s = summary_of(t, 1);
  CHECK(s.critical == std::vector<uint32_t>{0, 1, 4, 6});
  CHECK(s.critical_ns == 98 - 5);
}

TEST_CASE("a real run's critical path ends with its last chunk and begins with one that waited for nothing",
          "[trace][actors]") {
  const run_trace trace = traced(growing(), "cpu*2", placement_policy::round_robin);
  const timeline t = timeline_of(trace);
  const trace_summary s = summary_of(t, 2);
  CHECK(s.longest.size() == 2);
  CHECK(t.bars[s.longest[0]].duration_ns() >= t.bars[s.longest[1]].duration_ns());
  std::vector<uint32_t> chunks;
  for (uint32_t b : s.critical)
    if (t.bars[b].kind == bar_kind::chunk)
      chunks.push_back(b);
  CHECK(chunks.size() == trace.chunks.size()); // a chain
  CHECK(s.critical_ns <= t.end_ns);
  for (const lane_summary& l : s.lanes)
    CHECK(l.busy_ns <= t.end_ns);
}

TEST_CASE("a timeline that breaks its rules is refused", "[trace]") {
  check(two_devices());
  const auto refused = [](auto change) {
    timeline t = two_devices();
    change(t);
    CHECK_THROWS_AS(check(t), error);
    CHECK_THROWS_AS(to_chrome_json(t), error);
    CHECK_THROWS_AS(to_page(t), error);
  };
  refused([](timeline& t) { t.bars[0].end_ns = -1; });
  refused([](timeline& t) { t.bars[0].track = 3; });
  refused([](timeline& t) { t.tracks[0].lane = 2; });
  refused([](timeline& t) { t.tracks[0].lane = 1; }); // not ascending
  refused([](timeline& t) { t.edges.push_back({0, 6}); });
  refused([](timeline& t) { t.counters = {{.lane = 2}}; });
  refused([](timeline& t) { t.counters = {{.series = {"a"}, .points = {{0, {}}}}}; });
  refused([](timeline& t) { t.counters = {{.series = {"a"}, .points = {{5, {1}}, {4, {1}}}}}; });
}

TEST_CASE("a difference lists the nodes that moved, changed, came and went", "[trace]") {
  const timeline a = two_devices();
  timeline b = a;
  b.end_ns = 420;
  b.bars[4].track = 2;    // n moved
  b.bars[5].end_ns += 60; // m takes 100 instead of 40
  b.bars.push_back({.track = 1, .kind = bar_kind::node, .name = "new", .begin_ns = 150, .end_ns = 160, .op = "Add"});
  const trace_diff d = diff_of(a, b);
  CHECK(d.a_ns == 210);
  CHECK(d.b_ns == 420);
  REQUIRE(d.moved.size() == 1);
  CHECK(d.moved[0].name == "n");
  CHECK(d.moved[0].a.lane == "a");
  CHECK(d.moved[0].b.lane == "b");
  REQUIRE(d.slower.size() == 1);
  CHECK(d.slower[0].name == "m");
  CHECK(d.slower[0].delta_ns() == 60);
  CHECK(d.faster.empty());
  CHECK(d.unchanged == 1);
  CHECK(d.only_a.empty());
  REQUIRE(d.only_b.size() == 1);
  CHECK(d.only_b[0].name == "new");
  REQUIRE(d.lanes.size() == 2);
  CHECK(d.lanes[0].busy_a_ns == 125);
  const trace_diff back = diff_of(b, a);
  CHECK(back.faster.size() == 1);
  CHECK(back.only_a.size() == 1);
  CHECK(diff_of(a, a).unchanged == 2);
}

TEST_CASE("names are not part of the page's HTML", "[trace][D2]") {
  timeline t = two_devices();
  t.title = "</script><script>alert(1)</script>";
  t.bars[4].name = "<!--<script>";
  t.bars[5].name = "\xff\xfe<img>";
  const std::string plain = to_page(two_devices()), page = to_page(t);
  const auto opened = [](const std::string& text) { return std::count(text.begin(), text.end(), '<'); };
  CHECK(opened(page) == opened(plain));
  CHECK(page.find("Redistribution and use in source and binary forms") < page.find("<html"));
  CHECK(page.find("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'") != std::string::npos);
}
