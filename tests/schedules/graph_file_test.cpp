// Task graphs of other programs: read as they are meant, refused where they are wrong, and never more than that.
#include "schedules/graph_file.hpp"

#include "base/seeded_random.hpp"
#include "schedules/task_model.hpp"
#include "support/catch.hpp"

#include <fstream>
#include <unistd.h>

using namespace troupe;
using Catch::Contains;

namespace {

constexpr const char* wf_1_5 = R"({"name": "fork", "schemaVersion": "1.5", "workflow": {
  "specification": {
    "tasks": [{"name": "join", "id": "c", "parents": ["a", "b"], "children": [], "inputFiles": ["x", "y", "in"]},
              {"name": "split", "id": "a", "parents": [], "children": ["b", "c"], "outputFiles": ["x", "z"]},
              {"name": "work", "id": "b", "parents": ["a"], "children": ["c"], "inputFiles": ["x", "z"],
               "outputFiles": ["y"]}],
    "files": [{"id": "x", "sizeInBytes": 100}, {"id": "y", "sizeInBytes": 20}, {"id": "z", "sizeInBytes": 3},
              {"id": "in", "sizeInBytes": 9}]},
  "execution": {"makespanInSeconds": 9, "executedAt": "now", "tasks": [
    {"id": "b", "runtimeInSeconds": 2.5}, {"id": "a", "runtimeInSeconds": 1}, {"id": "c", "runtimeInSeconds": 0}]}}})";

constexpr const char* wf_1_4 = R"({"name": "fork", "schemaVersion": "1.4", "workflow": {"tasks": [
  {"name": "split", "id": "a", "type": "compute", "runtimeInSeconds": 1,
   "files": [{"name": "x", "sizeInBytes": 100, "link": "output"}, {"name": "z", "sizeInBytes": 3, "link": "output"}]},
  {"name": "work", "id": "b", "type": "compute", "runtimeInSeconds": 2.5, "parents": ["split"],
   "files": [{"name": "x", "sizeInBytes": 100, "link": "input"}, {"name": "z", "sizeInBytes": 3, "link": "input"},
             {"name": "y", "sizeInBytes": 20, "link": "output"}]},
  {"name": "join", "id": "c", "type": "compute", "runtimeInSeconds": 0, "parents": ["a", "b"],
   "files": [{"name": "x", "sizeInBytes": 100, "link": "input"}, {"name": "y", "sizeInBytes": 20, "link": "input"}]}
]}})";

constexpr const char* stg = "# made by hand\n 2\n0 0 0\n1 5 1 0\n2 7 1 0 # a comment\n3 0 2 1 2\n";

constexpr const char* dot = R"(/* by hand */ strict digraph "two ways" {
  graph [rankdir=LR]; node [shape=box, size=1e9]; rankdir = TB
  start [work=2e9, label="it begins \"here\""]
  start -> {b; c:port} -> end [bytes=8; weight=3] // two at a time
  subgraph cluster_a { edge [size=5]; start -> end; }
  end [size=-1]
})";

constexpr const char* dax = R"(<?xml version="1.0"?>
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="2.1" name="fork" jobCount="3">
  <job id="c" name="join" runtime="0">
    <uses file="x" link="input" size="100"/> <uses file="y" link="input" size="20"/>
  </job>
  <job id="a" name="split" namespace="n" runtime="1">
    <argument>-i <filename file="x"/></argument>
    <uses file="x" link="output" size="99"/> <uses name="z" link="output" size="3"/>
  </job>
  <job id="b" name="work">
    <profile namespace="pegasus" key="runtime"> 2.5 </profile>
    <uses file="x" link="input"/> <uses file="z" link="inout" size="4"/> <uses file="y" link="output" size="19"/>
  </job>
  <child ref="b"> <parent ref="a"/> </child>
  <child ref="c"> <parent ref="a"/> <parent ref="b"/> </child>
</adag>)";

std::string name_of(const task_graph& g, uint32_t n) {
  return task_name(g, n);
}

std::string complaint(std::string_view text) {
  try {
    parse_graph(text, "g");
  } catch (const error& e) {
    return e.code() == errc::invalid_argument ? e.what() : "another kind of error";
  }
  return "none";
}

std::string with(std::string text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

} // namespace

TEST_CASE("workflows of WfCommons are graphs of their files", "[schedules][formats]") {
  const task_graph g = parse_graph(wf_1_5, "unused");
  CHECK(g.name == "fork");
  REQUIRE(g.tasks.size() == 3);
  CHECK((name_of(g, 0) == "a" && name_of(g, 1) == "b" && name_of(g, 2) == "c"));
  CHECK((g.tasks[0].work == 1e9 && g.tasks[1].work == 2.5e9 && g.tasks[2].work == 0));
  CHECK(g.edges == std::vector<graph_edge>{{0, 1, 103}, {0, 2, 100}, {1, 2, 20}});
  CHECK(parse_graph(wf_1_4, "unused") == g);
}

TEST_CASE("a wrong workflow is refused with its place", "[schedules][formats][hostile]") {
  const auto refused = [](const std::string& text, const char* why) { CHECK_THAT(complaint(text), Contains(why)); };
  refused("{", "line 1, column 2: the text ends too early");
  refused("{}", "'workflow' is missing");
  refused(with(wf_1_5, "\"1.5\"", "\"1.3\""), "schemaVersion: version '1.3' is not known; 1.4 and 1.5 are");
  refused(with(wf_1_5, R"("parents": ["a", "b"])", R"("parents": ["a", "d"])"),
          "workflow.specification.tasks[0].parents[1]: there is no task 'd'");
  refused(with(wf_1_5, R"("parents": [])", R"("parents": ["c"])"), "tasks wait for each other: a, b, c");
  refused(with(wf_1_5, R"("parents": [])", R"("parents": ["a"])"),
          "tasks[1].parents[0]: the task 'a' waits for itself");
  refused(with(wf_1_5, R"("id": "b", "parents")", R"("id": "a", "parents")"), "there are two tasks 'a'");
  refused(with(wf_1_5, R"("sizeInBytes": 20)", R"("sizeInBytes": -1)"), "files[1].sizeInBytes: a number from 0");
  refused(with(wf_1_5, R"("runtimeInSeconds": 2.5)", R"("runtimeInSeconds": "1")"),
          "execution.tasks[0].runtimeInSeconds: a number from 0");
  refused(with(wf_1_5, R"({"id": "b", "runtimeInSeconds": 2.5},)", ""),
          "tasks[2]: 'execution' does not say how long this task took");
  refused(with(wf_1_5, R"("execution")", R"("executions")"), "'execution' is missing");
  refused(with(wf_1_5, R"("outputFiles": ["y"])", R"("outputFiles": ["x"])"), "two tasks write the file 'x'");
  refused(with(wf_1_4, R"("link": "input")", R"("link": "in")"), "'in' is neither input nor output");
}

TEST_CASE("standard task graphs have times and predecessors", "[schedules][formats]") {
  const task_graph g = parse_graph(stg, "rand0000");
  CHECK(g.name == "rand0000");
  REQUIRE(g.tasks.size() == 4);
  CHECK((g.tasks[0].work == 0 && g.tasks[1].work == 5e9 && g.tasks[2].work == 7e9 && g.tasks[3].work == 0));
  CHECK(g.edges == std::vector<graph_edge>{{0, 1, 0}, {0, 2, 0}, {1, 3, 0}, {2, 3, 0}});
}

TEST_CASE("a wrong standard task graph is refused with its line", "[schedules][formats][hostile]") {
  const auto refused = [](const std::string& text, const char* why) { CHECK_THAT(complaint(text), Contains(why)); };
  refused("2 3\n", "line 1: the number of tasks is needed there");
  refused("0\n", "line 1: the number of tasks");
  refused("99999999\n", "line 1: the number of tasks");
  refused(with(stg, "1 5 1 0", "1 5 2 0"), "line 4: a task's number, its time, how many predecessors");
  refused(with(stg, "2 7 1 0", "1 7 1 0"), "line 5: task 2 is needed there");
  refused(with(stg, "1 5 1 0", "1 5 1 2"), "line 4: task 1 cannot wait for task 2");
  refused(with(stg, "1 5", "1 5.5"), "line 4: '5.5' is not a whole number");
  refused(with(stg, "3 0 2 1 2\n", ""), "the text ends after 3 tasks; there should be 2, an entry and an exit");
  refused(std::string(stg) + "4 0 0\n", "more tasks than the first line says");
}

TEST_CASE("workflows of Pegasus are graphs of their jobs", "[schedules][formats]") {
  const task_graph g = parse_graph(dax, "unused");
  CHECK(g.name == "fork");
  REQUIRE(g.tasks.size() == 3);
  CHECK((name_of(g, 0) == "a" && name_of(g, 1) == "b" && name_of(g, 2) == "c"));
  CHECK((g.tasks[0].work == 1e9 && g.tasks[1].work == 2.5e9 && g.tasks[2].work == 0));
  CHECK(g.edges == std::vector<graph_edge>{{0, 1, 99 + 4}, {0, 2, 100}, {1, 2, 20}}); // as the reader says, if it does
  // Of two jobs that write a file of one name each gives it to those that wait for it.
  const task_graph two = parse_graph("<adag><job id='a' runtime='1'><uses file='f' link='output' size='5'/></job>"
                                     "<job id='b' runtime='1'><uses file='f' link='output' size='7'/></job>"
                                     "<job id='c' runtime='1'><uses file='f' link='input'/></job>"
                                     "<child ref='c'><parent ref='b'/></child></adag>",
                                     "stem");
  CHECK(two.name == "stem");
  CHECK(two.edges == std::vector<graph_edge>{{1, 2, 7}});
}

TEST_CASE("a wrong workflow of Pegasus is refused with its line", "[schedules][formats][hostile]") {
  const auto refused = [](const std::string& text, const char* why) { CHECK_THAT(complaint(text), Contains(why)); };
  refused("<platform/>", "line 1: <platform>: a workflow of Pegasus, <adag>, is needed there");
  refused(with(dax, "</adag>", ""), "line 16: no element found");
  refused(with(dax, R"(runtime="0")", ""), R"(line 3: <job id="c">: how long it takes is missing)");
  refused(with(dax, R"(runtime="0")", R"(runtime="-1")"),
          R"(line 3: <job id="c">: '-1' is no runtime: a number from 0)");
  refused(with(dax, " 2.5 ", "long"), "line 11: <profile>: 'long' is no runtime");
  refused(with(dax, R"(size="20")", R"(size="1e16")"), "line 4: <uses>: '1e16' is no size");
  refused(with(dax, R"(link="inout")", R"(link="both")"),
          "line 12: <uses>: there is no link 'both'; there are input, output");
  refused(with(dax, R"(<parent ref="b"/>)", R"(<parent ref="d"/>)"), "line 15: <parent>: there is no job 'd'");
  refused(with(dax, R"(<parent ref="b"/>)", R"(<parent ref="c"/>)"),
          "line 15: <parent>: the task 'c' waits for itself");
  refused(with(dax, R"(<parent ref="b"/>)", R"(<b/>)"), "line 15: <b>: a <child> has <parent>s");
  refused(with(dax, R"(<child ref="b"> <parent ref="a"/>)", R"(<child ref="a"> <parent ref="c"/>)"),
          "tasks wait for each other: c, a");
  refused(with(dax, R"(<job id="b")", R"(<job id="a")"), "there are two tasks 'a'");
  refused(with(dax, R"(<job id="b" name="work">)", R"(<dax id="d" file="d.xml"/> <job id="b" name="work">)"),
          R"(line 10: <dax id="d">: workflows in workflows are not read)");
}

TEST_CASE("files that many jobs of Pegasus share are refused before they take long", "[schedules][formats][hostile]") {
  std::string text = "<adag>";
  for (int i = 0; i < 10'000; ++i)
    text += fmt::format("<job id='{}' runtime='1'><uses file='f' link='inout'/></job>", i);
  CHECK_THAT(complaint(text + "</adag>"), Contains("more than 20000000 pairs of jobs share files"));
}

TEST_CASE("directed graphs of DOT have sizes of nodes and edges", "[schedules][formats]") {
  const task_graph g = parse_graph(dot, "unused");
  CHECK(g.name == "two ways");
  REQUIRE(g.tasks.size() == 4);
  CHECK((name_of(g, 0) == "start" && name_of(g, 1) == "b" && name_of(g, 2) == "c" && name_of(g, 3) == "end"));
  CHECK((g.tasks[0].work == 2e9 && g.tasks[1].work == 1e9 && g.tasks[2].work == 1e9 && g.tasks[3].work == 0));
  CHECK(g.edges == std::vector<graph_edge>{{0, 1, 8}, {0, 2, 8}, {0, 3, 5}, {1, 3, 8}, {2, 3, 8}});
}

TEST_CASE("a wrong graph of DOT is refused with its line", "[schedules][formats][hostile]") {
  const auto refused = [](const std::string& text, const char* why) { CHECK_THAT(complaint(text), Contains(why)); };
  refused("graph { a }", "line 1: a task graph is directed");
  refused("digraph {\n a -- b }", "line 2: a task graph is directed: '->' is needed there");
  refused("digraph {\n a -> b\n", "line 3: a node is needed there, not 'the end'");
  refused("digraph {\n a [size=much] }", "line 2: 'much' is no size");
  refused("digraph {\n a [size=1e40] }", "line 2: '1e40' is no size");
  refused("digraph {\n a [label=<b>] }", "line 2: names in HTML are not read");
  refused("digraph {\n a -> \"b }", "line 2: the name that begins there has no end");
  refused("digraph { /* a }", "line 1: the comment that begins there has no end");
  refused("digraph {\n a -> b -> a }", "tasks wait for each other: b, a");
  refused("digraph {\n a -> a }", "line 2: the task 'a' waits for itself");
  refused("digraph { a } b", "there is something after the graph");
  refused("digraph " + std::string(1000, '{'), "more than 64 braces");
}

TEST_CASE("files of task graphs are told apart by their content", "[schedules][formats]") {
  CHECK_THAT(complaint(""), Contains("it is no task graph: WfFormat begins with '{', DAX with '<', DOT with"));
  CHECK_THAT(complaint("tasks"), Contains("it is no task graph"));
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("troupe-graphs-{}", getpid());
  std::filesystem::create_directory(folder);
  const std::string file = folder / "chain.dot";
  std::ofstream(file) << "digraph { a -> b }";
  const task_graph g = read_task_graph("graph:" + file);
  CHECK((g.name == "chain" && g.tasks.size() == 2));
  CHECK(task_graph_file("graph:" + file) == std::filesystem::path(file));
  CHECK(task_graph_file("graph:layers,shape=0.5") == std::nullopt);
  CHECK(task_graph_file("model.onnx") == std::nullopt);
  CHECK_THROWS_WITH(read_task_graph("graph:" + file + "x"), Contains("chain.dotx' cannot be read"));
  std::ofstream(file) << "digraph { a -> }";
  CHECK_THROWS_WITH(read_task_graph("graph:" + file), Contains("chain.dot': line 1: a node is needed"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("damaged files of task graphs are read or refused", "[schedules][formats][hostile]") {
  seeded_random random(65);
  size_t refused = 0;
  for (size_t round = 0; round < 50'000; ++round) {
    const std::string_view samples[] = {wf_1_5, wf_1_4, stg, dot, dax};
    std::string text(samples[round % 5]);
    for (uint32_t changes = 1 + random.below(4); changes > 0; --changes) {
      const size_t at = random.below(static_cast<uint32_t>(text.size()));
      const size_t length = std::min<size_t>(random.below(30), text.size() - at);
      switch (random.below(4)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(random.below(static_cast<uint32_t>(text.size())), text.substr(at, length)); break;
        default: text.resize(at + 1);
      }
    }
    refused += complaint(text) != "none"; // anything but an error of ours ends the test
    CHECK(complaint(text) != "another kind of error");
  }
  CHECK(refused > 25'000);
}
