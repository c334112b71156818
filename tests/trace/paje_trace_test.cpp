// Traces for tools of others: Paje and StarPU's tasks.rec keep the rules of their formats.
#include "trace/timeline.hpp"

#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/traced_diamond.hpp"
#include "troupe/inspect.hpp"

#include <map>
#include <set>
#include <sstream>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

/// A line's words; what is in quotes is one.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (size_t at = 0; (at = line.find_first_not_of(' ', at)) != std::string::npos;) {
    const bool quoted = line[at] == '"';
    const size_t end = quoted ? line.find('"', at + 1) + 1 : std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

/// What a trace of Paje says, after the rules of the format were checked.
struct paje_facts {
  std::map<std::string, size_t> events; // by name
  std::vector<std::string> pushed;      // "time container value depth"
};

paje_facts read_paje(const std::string& text) {
  std::map<std::string, std::pair<std::string, size_t>> defined; // by number: name, fields
  std::string number;
  std::set<std::string> containers{"0"}, names{"0"}, keys;
  std::map<std::string, int> depth; // by container
  double now = 0;
  paje_facts found;
  for (const std::string& line : lines_of(text)) {
    const std::vector<std::string> w = words_of(line);
    if (w[0] == "%EventDef") {
      number = w[2];
      defined[number] = {w[1], 0};
    } else if (w[0] == "%") {
      ++defined[number].second;
    } else if (w[0] != "%EndEventDef") {
      const auto& [event, fields] = defined.at(w[0]);
      INFO(line);
      CHECK(w.size() == fields + 1);
      ++found.events[event];
      if (event.starts_with("PajeDefine")) {
        CHECK(names.insert(w[1]).second);
        continue;
      }
      CHECK(std::stod(w[1]) >= now);
      now = std::stod(w[1]);
      if (event == "PajeCreateContainer") {
        CHECK((containers.insert(w[2]).second && names.contains(w[3]) && containers.contains(w[4])));
      } else if (event == "PajeDestroyContainer") {
        CHECK((containers.erase(w[2]) == 1 && depth[w[2]] == 0));
      } else {
        CHECK((names.contains(w[2]) && containers.contains(w[3])));
        depth[w[3]] += event == "PajePushState" ? 1 : event == "PajePopState" ? -1 : 0;
        CHECK(depth[w[3]] >= 0);
        if (event == "PajePushState")
          found.pushed.push_back(fmt::format("{} {} {} {}", w[1], w[3], w[4], depth[w[3]]));
        if (event == "PajeStartLink")
          CHECK((keys.insert(w[6]).second && containers.contains(w[4])));
        if (event == "PajeEndLink")
          CHECK((keys.erase(w[6]) == 1 && containers.contains(w[4])));
      }
    }
  }
  CHECK((containers.size() == 1 && keys.empty()));
  return found;
}

} // namespace

TEST_CASE("Paje has bars as states that nest, edges as links, counters as variables", "[trace][formats]") {
  timeline t{.title = "a \"b\"", .end_ns = 300, .lanes = {{"d", ""}}, .tracks = {{0, "d"}, {0, "q"}}};
  const auto bar = [&](uint32_t track, const char* name, int64_t begin, int64_t end) {
    t.bars.push_back({.track = track, .name = name, .begin_ns = begin, .end_ns = end});
  };
  bar(0, "inner", 100, 200);
  bar(0, "outer", 100, 200);
  bar(0, "next", 200, 200);
  bar(1, "inner", 200, 300);
  t.edges = {{2, 3}, {3, 0}}; // the second one goes back: its end is moved
  t.counters = {{0, "queue", {"chunks"}, {{0, {2}}, {300, {0}}}}};
  const std::string text = to_paje(t);
  const paje_facts facts = read_paje(text);
  CHECK(facts.pushed == std::vector<std::string>{"0.000000100 t0 v0 1", "0.000000100 t0 v1 2", "0.000000200 t0 v2 1",
                                                 "0.000000200 t1 v0 1"});
  CHECK(facts.events.at("PajePopState") == 4);
  CHECK((facts.events.at("PajeStartLink") == 2 && facts.events.at("PajeEndLink") == 2));
  CHECK(facts.events.at("PajeSetVariable") == 2);
  CHECK_THAT(text, Contains("4 v1 S \"outer\"") && Contains("5 0 p P 0 \"a 'b'\""));
}

TEST_CASE("a run's trace keeps the rules of Paje", "[trace][formats]") {
  const run_trace trace = traced_diamond();
  const paje_facts facts = read_paje(to_paje(trace));
  CHECK(facts.events.at("PajePushState") == timeline_of(trace).bars.size());
  CHECK(facts.events.at("PajeStartLink") == timeline_of(trace).edges.size());
}

TEST_CASE("tasks.rec has each node with what it waited for", "[trace][formats]") {
  const run_trace trace = traced_diamond();
  std::vector<std::map<std::string, std::string>> tasks(1);
  for (const std::string& line : lines_of(to_tasks_rec(trace))) {
    if (line.empty())
      tasks.emplace_back();
    else
      CHECK(tasks.back().emplace(line.substr(0, line.find(": ")), line.substr(line.find(": ") + 2)).second);
  }
  tasks.pop_back(); // after the last empty line
  REQUIRE(tasks.size() == 5);
  std::map<std::string, std::string> waits;
  for (auto& task : tasks) {
    const auto number = [&](const char* field) { return std::stod(task.at(field)); };
    CHECK((number("SubmitTime") <= number("StartTime") && number("StartTime") <= number("EndTime")));
    CHECK((number("WorkerId") <= 1 && task.at("WorkerId") == task.at("MemoryNode")));
    std::istringstream before(task["DependsOn"]);
    for (size_t job = 0; before >> job;) {
      CHECK(tasks.at(job - 1).at("JobId") == std::to_string(job));
      CHECK(std::stod(tasks[job - 1].at("EndTime")) <= number("StartTime"));
      waits[task.at("Model")] += tasks[job - 1].at("Model") + " ";
    }
    CHECK(task.at("Sizes") == (task.at("Modes") == "R W" ? "24 24" : "24 24 24"));
  }
  CHECK(waits.at("Add").size() == std::string("Sigmoid Relu ").size());
  CHECK(waits.at("Mul").size() == std::string("Sigmoid Relu ").size());
  CHECK(waits.at("Sigmoid") == "Sigmoid ");
  CHECK(!waits.contains("Relu"));
}
