// Traces of real runs on two CPU devices, and of made-up times.
#include "trace/run_trace.hpp"

#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/traced_diamond.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <set>

using namespace troupe;
using namespace troupe::test;
using nlohmann::json;

namespace {

const tensor six = floats({2, 3}, {-1, 2, 3, 4, 5, 6});

run_result traced_run(const graph& g, session_options options, const char* devices = "cpu*2") {
  engine e({.devices = {devices}});
  return e.load(g, options).run({{"x", six}}, {.trace = true});
}

/// Slices of one category.
std::vector<json> slices(const json& document, const std::string& category) {
  std::vector<json> found;
  for (const json& e : document["traceEvents"])
    if (e["ph"] == "X" && e["cat"] == category)
      found.push_back(e);
  return found;
}

/// Names of processes by number.
std::map<int, std::string> process_names(const json& document) {
  std::map<int, std::string> names;
  for (const json& e : document["traceEvents"])
    if (e["ph"] == "M" && e["name"] == "process_name")
      CHECK(names.emplace(e["pid"], e["args"]["name"]).second);
  return names;
}

/// Names of tracks by process and number; each occurs once.
std::map<std::pair<int, int>, std::string> track_names(const json& document) {
  std::map<std::pair<int, int>, std::string> names;
  for (const json& e : document["traceEvents"])
    if (e["ph"] == "M" && e["name"] == "thread_name")
      CHECK(names.emplace(std::pair<int, int>(e["pid"], e["tid"]), e["args"]["name"]).second);
  return names;
}

double end_of(const json& slice) {
  return slice["ts"].get<double>() + slice["dur"].get<double>();
}

/// Requires each arrow to begin inside a slice of its track and to end where a slice of its track begins.
void check_flows(const json& document, size_t expected) {
  std::map<int, std::pair<json, json>> flows;
  for (const json& e : document["traceEvents"]) {
    if (e["ph"] == "s")
      flows[e["id"]].first = e;
    if (e["ph"] == "f")
      flows[e["id"]].second = e;
  }
  CHECK(flows.size() == expected);
  std::vector<json> chunks = slices(document, "chunk");
  for (json& node : slices(document, "node"))
    chunks.push_back(std::move(node)); // control flow has no slice but its node's
  const auto on_slice = [&](const json& flow, auto fits) {
    return std::any_of(chunks.begin(), chunks.end(), [&](const json& c) {
      return c["pid"] == flow["pid"] && c["tid"] == flow["tid"] && fits(c, flow["ts"].get<double>());
    });
  };
  for (const auto& [id, flow] : flows) {
    REQUIRE(flow.first.is_object());
    REQUIRE(flow.second.is_object());
    CHECK(on_slice(flow.first, [](const json& c, double t) { return c["ts"] <= t && t <= end_of(c); }));
    CHECK(on_slice(flow.second, [](const json& c, double t) { return c["ts"] == t; }));
    CHECK(flow.first["ts"] <= flow.second["ts"]);
  }
}

} // namespace

TEST_CASE("every node of a run on two devices is traced once", "[trace][actors]") {
  const run_result result = traced_run(long_diamond(), {.policy = placement_policy::round_robin, .fuse = false});
  REQUIRE(result.trace);
  const run_trace& trace = *result.trace;
  REQUIRE(trace.source);
  const plan& p = *trace.source;
  std::multiset<node_id> seen;
  CHECK(trace.begin_ns <= trace.end_ns);
  CHECK(trace.chunks.size() == p.chunks.size());
  for (const chunk_trace& c : trace.chunks) {
    CHECK(trace.begin_ns <= c.sent_ns);
    CHECK(c.ended_ns <= trace.end_ns);
    for (const device_timing& t : c.timings) {
      CHECK(c.sent_ns <= t.begin_ns);
      CHECK(t.begin_ns <= t.end_ns);
      CHECK(t.end_ns <= c.ended_ns);
      if (t.kind != device_timing::work::node)
        continue;
      seen.insert(t.id);
      CHECK(p.chunk_of_node[t.id] == c.chunk);
      CHECK(!t.kernel.empty());
    }
  }
  CHECK(seen.size() == p.program->nodes.size());
  CHECK(std::set<node_id>(seen.begin(), seen.end()).size() == seen.size());
}

TEST_CASE("the document names nodes, kernels and devices and joins chunks by arrows", "[trace][actors]") {
  const run_result result = traced_run(long_diamond(), {.policy = placement_policy::round_robin, .fuse = false});
  const plan& p = *result.trace->source;
  const json document = json::parse(to_chrome_json(*result.trace));
  CHECK(slices(document, "run").size() == 1);
  CHECK(slices(document, "chunk").size() == p.chunks.size());
  const auto nodes = slices(document, "node");
  REQUIRE(nodes.size() == p.program->nodes.size());
  for (const json& n : nodes) {
    const node& call = p.program->nodes[n["args"]["node"].get<size_t>()];
    CHECK(n["name"] == call.name);
    CHECK(n["args"]["op"] == call.op_type);
    CHECK(track_names(document).at({n["pid"], n["tid"]}) ==
          p.devices[p.placement[n["args"]["node"].get<size_t>()]].name + ", queue 0");
    CHECK(n["dur"].get<double>() >= 0);
  }
  size_t dependencies = 0;
  for (const chunk& c : p.chunks)
    dependencies += c.predecessors.size();
  CHECK(dependencies > 1);
  check_flows(document, dependencies);
  CHECK(process_names(document) == std::map<int, std::string>{{0, "troupe"}});
  std::set<std::string> tracks;
  for (const auto& [at, name] : track_names(document))
    tracks.insert(name);
  const std::string one = p.devices[0].name, other = p.devices[1].name;
  CHECK(tracks == std::set<std::string>{"run", one, one + ", queue 0", other, other + ", queue 0"});
}

TEST_CASE("other hosts are processes, their devices tracks", "[trace][C11]") {
  const run_result result =
      traced_run(long_diamond(), {.policy = placement_policy::round_robin, .fuse = false}, "cpu*3");
  run_trace trace = *result.trace;
  auto source = std::make_shared<plan>(*trace.source);
  source->devices[0].name = "far/cpu";
  source->devices[0].host = "far";
  source->devices[2].name = "far/cpu#1";
  source->devices[2].host = "far";
  trace.source = source;
  const json document = json::parse(to_chrome_json(trace));
  const auto processes = process_names(document);
  const auto tracks = track_names(document);
  CHECK(processes.at(0) == "troupe");
  REQUIRE(processes.size() == 2);
  CHECK(processes.at(1) == "far");
  CHECK(tracks.at({0, 0}) == "run");
  for (const json& c : slices(document, "chunk")) {
    const device_info& d = source->devices[source->chunks[c["args"]["chunk"].get<size_t>()].device];
    CHECK(processes.at(c["pid"]) == (d.host.empty() ? "troupe" : "far"));
    CHECK(tracks.at({c["pid"], c["tid"]}) == d.name);
  }
}

TEST_CASE("a chunk begins after those that it depends on", "[trace][actors]") {
  const run_result result = traced_run(chain(6), {.policy = placement_policy::round_robin, .fuse = false});
  std::map<chunk_id, json> chunks;
  for (const json& c : slices(json::parse(to_chrome_json(*result.trace)), "chunk"))
    chunks[c["args"]["chunk"]] = c;
  const plan& p = *result.trace->source;
  REQUIRE(p.chunks.size() == 6);
  for (chunk_id c = 0; c < p.chunks.size(); ++c)
    for (chunk_id before : p.chunks[c].predecessors)
      CHECK(end_of(chunks.at(before)) <= chunks.at(c)["ts"].get<double>());
}

TEST_CASE("without being asked for nothing is traced", "[trace][actors]") {
  engine e({.devices = {"cpu"}});
  const run_result result = e.load(long_diamond()).run({{"x", six}});
  CHECK(!result.trace);
  CHECK_THROWS_AS(to_chrome_json(run_trace{}), error);
}

TEST_CASE("devices that tell no times, and runs without work, are traced too", "[trace][actors]") {
  const run_result silent = traced_run(chain(3), {}, "null");
  const json document = json::parse(to_chrome_json(*silent.trace));
  CHECK(slices(document, "chunk").size() == 1);
  CHECK(slices(document, "node").empty());
  graph_builder constant;
  constant.output(constant.constant("c", floats({1}, {3})));
  engine e({.devices = {"cpu"}});
  const run_result idle = e.load(constant.g).run({}, {.trace = true});
  CHECK(slices(json::parse(to_chrome_json(*idle.trace)), "run").size() == 1);
}

TEST_CASE("moves have tracks of their queues, those that overlap are side by side", "[trace]") {
  run_result result = traced_run(chain(2), {.fuse = false}, "cpu");
  run_trace trace = *result.trace;
  REQUIRE(trace.chunks.size() == 1);
  chunk_trace& c = trace.chunks[0];
  const int64_t t0 = trace.begin_ns;
  const value_id x = trace.source->program->inputs[0];
  using work = device_timing::work;
  c.timings = {{.id = 1, .begin_ns = t0 + 3000, .end_ns = t0 + 6000, .kernel = "k1"}, // overlaps node 0
               {.id = 0, .begin_ns = t0 + 2000, .end_ns = t0 + 4000, .kernel = "k0"},
               {.kind = work::upload, .id = x, .queue = 3, .begin_ns = t0, .end_ns = t0 + 2000, .bytes = 24},
               {.kind = work::download, .id = x, .begin_ns = t0 + 6000, .end_ns = t0 + 7500, .bytes = 24}};
  const json document = json::parse(to_chrome_json(trace));
  const auto nodes = slices(document, "node"), up = slices(document, "upload"), down = slices(document, "download");
  REQUIRE(nodes.size() == 2);
  REQUIRE(up.size() == 1);
  REQUIRE(down.size() == 1);
  CHECK(up[0]["name"] == "upload x");
  CHECK(up[0]["args"]["bytes"] == 24);
  CHECK(down[0]["ts"] == 6.0);
  CHECK(down[0]["dur"] == 1.5);
  CHECK(nodes[0]["tid"] != nodes[1]["tid"]);
  CHECK(nodes[0]["args"]["kernel"] == "k0"); // in the order of their begins
  CHECK(nodes[1]["args"]["kernel"] == "k1");
  CHECK(down[0]["tid"] == nodes[0]["tid"]);
  CHECK(std::set<int>{up[0]["tid"], nodes[0]["tid"], nodes[1]["tid"], 0}.size() == 4);
  const auto chunks = slices(document, "chunk"); // from the first node to the last
  CHECK(chunks[0]["ts"] == 2.0);
  CHECK(chunks[0]["dur"] == 4.0);
}

TEST_CASE("executions of bodies are in the trace of their run", "[trace][control]") {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {2, 3});
  const value_id y = add_loop(b, "loop", n, no_value, x, [](body_builder& body, value_id, value_id go, value_id v) {
    return std::pair(go, body.op("Sigmoid", {v}));
  });
  b.output(b.op("Relu", {y}));
  engine e({.devices = {"cpu"}});
  const run_result r = e.load(b.g).run({{"x", six}, {"n", tensor::scalar<int64_t>(3)}}, {.trace = true});
  const json document = json::parse(to_chrome_json(*r.trace));
  size_t steps = 0, loops = 0;
  for (const json& node : slices(document, "node")) {
    steps += node["args"]["op"] == "Sigmoid";
    loops += node["args"]["op"] == "Loop";
    if (node["args"]["op"] == "Loop")
      CHECK(node["args"]["kernel"] == "bodies: 3");
  }
  CHECK(steps == 3);
  CHECK(loops == 1);
  CHECK(slices(document, "chunk").back()["name"] == "Loop 'loop', iteration 2: chunk 0");
  check_flows(document, 1);
}
