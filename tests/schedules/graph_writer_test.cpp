// Task graphs that are written, and read again.
#include "schedules/graph_file.hpp"

#include "base/seeded_random.hpp"
#include "schedules/task_graph.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

constexpr uint64_t seeds = 200;

/// A random graph whose tasks have names of all kinds.
task_graph random_graph(uint64_t seed) {
  seeded_random random(seed);
  task_graph g = layers({.tasks = 1 + random.below(60), .shape = 0.5 + random.below(3)}, 3e9, 1e6, seed);
  g.name = fmt::format("graph {} of 200", seed);
  constexpr const char* names[] = {"task {}", "say \"{}\"", "größe_{}", "{}", "a->b;{}", "node [{}]", "-{}", "/*{}*/"};
  for (size_t n = 0; n < g.tasks.size(); ++n)
    g.tasks[n].name = g.tasks[n].kind = fmt::format(fmt::runtime(names[random.below(8)]), n);
  return g;
}

std::string refusal_to_write(const task_graph& g, std::string (*write)(const task_graph&)) {
  const error e = thrown_by([&] { write(g); });
  return e.code() == errc::invalid_argument ? e.what() : "another kind of error";
}

} // namespace

TEST_CASE("graphs that are written as DOT are read as they were", "[schedules][formats]") {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const task_graph g = random_graph(seed);
    CHECK(parse_graph(to_dot(g), "unused") == g);
  }
}

TEST_CASE("graphs that are written as WfFormat are read as they were, but for parts of bytes", "[schedules][formats]") {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    task_graph g = random_graph(seed);
    task_graph read = parse_graph(to_wf_format(g), "unused");
    REQUIRE(read.tasks.size() == g.tasks.size());
    for (size_t n = 0; n < g.tasks.size(); ++n) {
      CHECK(std::abs(read.tasks[n].work - g.tasks[n].work) <= 4e-16 * g.tasks[n].work); // seconds, and back
      read.tasks[n].work = g.tasks[n].work;
    }
    for (graph_edge& e : g.edges)
      e.bytes = std::round(e.bytes);
    CHECK(read == g);
  }
}

TEST_CASE("WfFormat has what its schema asks for", "[schedules][formats]") {
  const auto document = nlohmann::json::parse(to_wf_format(
      {.name = "", .tasks = {{"load", 2e9, "a"}, {"", 5e8, "b"}, {"sum", 0}}, .edges = {{0, 1, 7.6}, {1, 2, 0}}}));
  CHECK(document["name"] == "workflow");
  CHECK(document["schemaVersion"] == "1.5");
  const auto& said = document["workflow"]["specification"];
  CHECK(said["tasks"][0] == nlohmann::json::parse(R"({"name": "load", "id": "a", "parents": [], "children": ["b"],
                                                      "inputFiles": [], "outputFiles": ["file_0"]})"));
  CHECK(said["tasks"][1]["name"] == "b");
  CHECK(said["tasks"][2] == nlohmann::json::parse(R"({"name": "sum", "id": "sum_2", "parents": ["b"], "children": [],
                                                      "inputFiles": [], "outputFiles": []})"));
  CHECK(said["files"] == nlohmann::json::parse(R"([{"id": "file_0", "sizeInBytes": 8}])"));
  const auto& done = document["workflow"]["execution"];
  CHECK(done["makespanInSeconds"] == 2.5);
  CHECK(done["executedAt"].is_string());
  CHECK(done["tasks"][1] == nlohmann::json::parse(R"({"id": "b", "runtimeInSeconds": 0.5})"));
}

TEST_CASE("graphs that are written as STG get an entry and an exit, once", "[schedules][formats]") {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    task_graph g = random_graph(seed);
    for (graph_task& t : g.tasks)
      t.work = std::round(t.work / 1e8) * 1e9;
    for (graph_edge& e : g.edges)
      e.bytes = 0;
    const task_graph read = parse_graph(to_stg(g), g.name);
    CHECK(parse_graph(to_stg(read), g.name) == read);
    REQUIRE(read.tasks.size() == g.tasks.size() + 2);
    for (size_t n = 0; n < g.tasks.size(); ++n)
      CHECK(read.tasks[n + 1].work == g.tasks[n].work);
    CHECK((read.tasks.front().work == 0 && read.tasks.back().work == 0));
    std::vector<graph_edge> inside;
    const auto last = static_cast<uint32_t>(g.tasks.size() + 1);
    for (const graph_edge& e : read.edges)
      if (e.from != 0 && e.to != last)
        inside.push_back({e.from - 1, e.to - 1, 0});
    CHECK(inside == g.edges);
  }
}

TEST_CASE("what a format does not have is refused when it is written", "[schedules][formats]") {
  const task_graph good{.name = "g", .tasks = {{"a", 1e9}, {"b", 1e9}}, .edges = {{0, 1, 4}}};
  const auto refused = [&](auto change, std::string (*write)(const task_graph&), const char* why) {
    task_graph g = good;
    change(g);
    CHECK_THAT(refusal_to_write(g, write), Contains(why));
  };
  refused([](task_graph&) {}, to_stg, "the edge from 'a_0' to 'b_1' has 4 bytes, which STG does not have");
  refused([](task_graph& g) { g = {"g", {{"a", 1.5e9}}, {}}; }, to_stg, "'a_0' takes 1.5 s; STG has whole seconds");
  refused([](task_graph& g) { g.tasks[0].name = "a\\b"; }, to_dot, "the name 'a\\b' has a '\\'");
  refused([](task_graph& g) { g.tasks[1].work = -1; }, to_dot, "has a task 1 of work -1");
  refused([](task_graph& g) { g.edges[0].bytes = -1; }, to_wf_format, "an edge from 0 to 1 of -1 bytes");
  refused([](task_graph& g) { g.edges[0].to = 2; }, to_wf_format, "has 2 tasks and an edge from 0 to 2");
  refused([](task_graph& g) { g.tasks[1].name = "a_0"; }, to_wf_format, "has two tasks 'a_0'");
}

TEST_CASE("a task graph's file says its format by its name", "[schedules][formats]") {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("troupe-written-{}", getpid());
  std::filesystem::create_directory(folder);
  const task_graph g{.name = "g", .tasks = {{"a", 1e9, "a"}, {"b", 2e9, "b"}}, .edges = {{0, 1, 4}}};
  for (const char* name : {"g.json", "g.dot", "g.gv"}) {
    const std::string file = folder / name;
    save_task_graph(g, file);
    CHECK(read_task_graph("graph:" + file) == g);
  }
  CHECK(thrown_by([&] { save_task_graph(g, folder / "g.xml"); }).code() == errc::invalid_argument);
  CHECK(thrown_by([&] { save_task_graph(g, folder / "none" / "g.dot"); }).code() == errc::io);
  std::filesystem::remove_all(folder);
}
