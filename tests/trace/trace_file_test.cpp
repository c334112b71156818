// Trace files: ours keep the format's rules and come back as they were; those of strangers are checked, bounded and
// refused with a reason.
#include "trace/check_trace.hpp"
#include "trace/read_trace.hpp"
#include "trace/trace_diff.hpp"

#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"
#include "support/control_models.hpp"
#include "support/small_models.hpp"
#include "support/thrown.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <random>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;
using nlohmann::json;

namespace {

run_trace two_device_trace() {
  graph_builder b;
  const value_id x = b.input("x", {2, 3});
  const value_id a = b.op("Sigmoid", {x}), c = b.op("Relu", {x});
  b.output(b.op("Add", {b.op("Sigmoid", {a}), c}));
  engine e({.devices = {"cpu*3"}});
  const session model = e.load(b.g, {.policy = placement_policy::round_robin, .fuse = false});
  return *model.run({{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}}, {.trace = true}).trace;
}

run_trace loop_trace() {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {2, 3});
  b.output(b.op("Relu", {add_loop(b, "loop", n, no_value, x, [](body_builder& body, value_id, value_id go, value_id v) {
                  return std::pair(go, body.op("Sigmoid", {v}));
                })}));
  engine e({.devices = {"cpu"}});
  const named_tensors inputs{{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}, {"n", tensor::scalar<int64_t>(3)}};
  return *e.load(b.g).run(inputs, {.trace = true}).trace;
}

/// Problems of a file that holds these events.
std::vector<std::string> problems(const std::string& events) {
  return check_trace("{\"traceEvents\":[" + events + "]}").listed;
}

/// Events by their rule: one that keeps it, one that does not, and the error for that.
struct rule {
  const char *good, *bad, *said;
};

const char* const slice = R"({"ph":"X","pid":1,"tid":1,"name":"s","ts":0,"dur":100},)";

} // namespace

TEST_CASE("traces that we write keep the rules of the trace format", "[trace]") {
  for (const run_trace& trace : {two_device_trace(), loop_trace()}) {
    const trace_problems found = check_trace(to_chrome_json(trace));
    CHECK(found.listed == std::vector<std::string>{});
    CHECK(found.count == 0);
    CHECK(found.events > 10);
  }
}

TEST_CASE("a trace file is read as it was written", "[trace]") {
  for (const run_trace& trace : {two_device_trace(), loop_trace()}) {
    timeline written = timeline_of(trace);
    written.title = "a model";
    const timeline read = read_trace(to_chrome_json(written));
    CHECK(read.title == "a model");
    CHECK(read.end_ns == written.end_ns);
    CHECK(read.bars.size() == written.bars.size());
    CHECK(read.edges.size() == written.edges.size());
    CHECK(critical_path(read) == critical_path(written));
    CHECK(to_chrome_json(read) == to_chrome_json(read_trace(to_chrome_json(read))));
    const trace_diff none = diff_of(written, read);
    CHECK(none.slower.size() + none.faster.size() + none.moved.size() + none.only_a.size() + none.only_b.size() == 0);
    for (const timeline_counter& c : written.counters)
      CHECK(std::any_of(read.counters.begin(), read.counters.end(), [&](const timeline_counter& other) {
        return other.name == c.name && read.lanes[other.lane].name == written.lanes[c.lane].name &&
               other.points.size() == c.points.size() && other.series.size() == c.series.size();
      }));
  }
}

TEST_CASE("each rule of the format is checked", "[trace]") {
  const std::vector<rule> rules{
      {R"({"ph":"X","pid":1,"tid":1,"name":"a","ts":1,"dur":0})", R"({"ph":"X","pid":1,"tid":1,"name":"a","ts":1})",
       "'dur' is missing"},
      {R"({"ph":"i","pid":1,"name":"a","ts":1})", R"({"ph":"?","pid":1,"tid":1,"name":"a","ts":1})", "no such phase"},
      {R"({"ph":"X","pid":1,"tid":1,"name":"a","ts":-1,"dur":2})",
       R"({"ph":"X","pid":1,"tid":1,"name":"a","ts":1,"dur":-2})", "lasts -2 us"},
      {R"({"ph":"X","pid":1,"tid":1,"name":"a","ts":1.5,"dur":2})",
       R"({"ph":"X","pid":1,"tid":1,"name":"a","ts":"1","dur":2})", "'ts' is of the wrong type"},
      {R"({"ph":"X","pid":1,"tid":1,"name":"a","ts":1,"dur":2,"args":{}})",
       R"({"ph":"X","pid":1,"tid":1,"name":"a","ts":1,"dur":2,"args":[]})", "'args' is of the wrong type"},
      {R"({"ph":"B","pid":1,"tid":1,"name":"a","ts":1},{"ph":"E","pid":1,"tid":1,"ts":2})",
       R"({"ph":"B","pid":1,"tid":1,"name":"a","ts":1},{"ph":"E","pid":1,"tid":2,"ts":2})", "E without a B"},
      {R"({"ph":"B","pid":1,"tid":1,"name":"a","ts":1},{"ph":"E","pid":1,"tid":1,"ts":2,"name":"a"})",
       R"({"ph":"B","pid":1,"tid":1,"name":"a","ts":1},{"ph":"E","pid":1,"tid":1,"ts":2,"name":"b"})", "E ends 'a'"},
      {R"({"ph":"B","pid":1,"tid":1,"name":"a","ts":1},{"ph":"E","pid":1,"tid":1,"ts":1})",
       R"({"ph":"B","pid":1,"tid":1,"name":"a","ts":1})", "B has no E"},
      {R"({"ph":"X","pid":1,"tid":1,"name":"a","ts":0,"dur":5},{"ph":"X","pid":1,"tid":1,"name":"b","ts":1,"dur":4})",
       R"({"ph":"X","pid":1,"tid":1,"name":"a","ts":0,"dur":5},{"ph":"X","pid":1,"tid":1,"name":"b","ts":1,"dur":5})",
       "overlaps event 0"},
      {R"({"ph":"b","pid":1,"cat":"c","id":1,"name":"a","ts":0},{"ph":"e","pid":1,"cat":"c","id":1,"name":"a","ts":1})",
       R"({"ph":"b","pid":1,"cat":"c","id":1,"name":"a","ts":0},)"
       R"({"ph":"e","pid":1,"cat":"c","id":"1","name":"a","ts":1})",
       "e without a b"},
      {R"({"ph":"C","pid":1,"name":"a","ts":0,"args":{"x":1}})",
       R"({"ph":"C","pid":1,"name":"a","ts":0,"args":{"x":"1"}})", "'x' of a counter is not a number"},
      {R"({"ph":"C","pid":1,"name":"a","ts":0,"args":{"x":-1.5}})", R"({"ph":"C","pid":1,"name":"a","ts":0,"args":{}})",
       "without a number"},
      {R"({"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"x"}})",
       R"({"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":1}})", "args.name is not a string"},
  };
  for (const rule& r : rules) {
    CHECK(problems(r.good) == std::vector<std::string>{});
    REQUIRE(!problems(r.bad).empty());
    CHECK_THAT(problems(r.bad).front(), Contains(r.said));
  }
}

TEST_CASE("flows begin once, inside of slices", "[trace]") {
  const auto flow = [](const char* phase, double ts, const char* more = "") {
    return fmt::format(R"({{"ph":"{}","pid":1,"tid":1,"cat":"c","id":7,"name":"f","ts":{}{}}})", phase, ts, more);
  };
  const std::string s = slice, enclosing = R"(,"bp":"e")";
  CHECK(problems(s + flow("s", 1) + "," + flow("f", 2, enclosing.c_str())).empty());
  CHECK_THAT(problems(s + flow("s", 1)).at(0), Contains("does not end"));
  CHECK_THAT(problems(s + flow("f", 1, enclosing.c_str())).at(0), Contains("begins 0 times"));
  CHECK_THAT(problems(s + flow("s", 1) + "," + flow("s", 2) + "," + flow("f", 3)).at(0), Contains("begins 2 times"));
  CHECK_THAT(problems(s + flow("s", 3) + "," + flow("f", 2, enclosing.c_str())).at(0),
             Contains("before the flow begins"));
  CHECK_THAT(problems(s + flow("s", 1) + "," + flow("f", 200, enclosing.c_str())).at(0),
             Contains("not inside of a slice"));
  CHECK(problems(s + flow("s", 1) + "," + flow("f", 200)).empty()); // it binds to the next slice
}

TEST_CASE("traces of other programs are read too", "[trace]") {
  const timeline t =
      read_trace(R"([{"ph":"B","pid":3,"tid":4,"name":"a","ts":1000},{"ph":"E","pid":3,"tid":4,"ts":1500},
    {"ph":"X","pid":3,"tid":5,"name":"b","ts":1600.25,"dur":1},
    {"ph":"M","pid":3,"name":"process_name","args":{"name":"p"}},
    {"ph":"C","pid":3,"tid":4,"name":"heap","ts":1100,"args":{"x":3}}, {"ph":"X"}, {}])");
  REQUIRE(t.bars.size() == 2);
  CHECK(t.bars[0].begin_ns == 0);
  CHECK(t.bars[0].end_ns == 500'000);
  CHECK(t.bars[1].begin_ns == 600'250);
  CHECK(t.lanes.at(0).name == "thread 4");
  CHECK(t.lanes.at(0).host == "p");
  REQUIRE(t.counters.size() == 1);
  CHECK(t.counters[0].points.at(0).at_ns == 100'000);
}

TEST_CASE("a file that is not a trace is refused with a reason", "[trace][D2]") {
  const auto said = [](const std::string& text) {
    const error e = thrown_by([&] { read_trace(text); });
    CHECK(e.code() == errc::invalid_input);
    return std::string(e.what());
  };
  CHECK_THAT(said(""), Contains("the trace is not JSON: line 1, column 1: the text ends"));
  CHECK_THAT(said("{\"traceEvents\":[{]}"), Contains("line 1, column 18: ']' is wrong there"));
  CHECK_THAT(said("{}"), Contains("traceEvents"));
  CHECK_THAT(said("7"), Contains("traceEvents"));
  CHECK_THAT(said("[]"), Contains("nothing that lasts"));
  CHECK_THAT(said("[1]"), Contains("event 0 of the trace is not an object"));
  CHECK_THAT(said("[[{}]]"), Contains("event 0 of the trace is not an object"));
  CHECK_THAT(said(std::string(100'000, '[')), Contains("event 0"));
  CHECK_THAT(said("[{\"a\":" + std::string(100'000, '[')), Contains("nests deeper than 32"));
  CHECK_THAT(said(R"([{"ph":"X","pid":1,"tid":1,"name":"a","ts":1e300,"dur":1}])"),
             Contains("event 0 of the trace is at 1e+300 us"));
  CHECK_THAT(said(R"([{"ph":"X","pid":1,"tid":1,"name":"a","ts":1e999,"dur":1}])"), Contains("a number is larger"));
  CHECK_THAT(said("[{\"name\":\"\xff\"}]"), Contains("line 1, column 11: '\\xff' is wrong"));
}

TEST_CASE("damaged trace files never do more than be refused", "[trace][D2]") {
  const std::string whole = to_chrome_json(two_device_trace());
  std::mt19937 random(3);
  const std::string_view bytes = "{}[]\",:0123456789-.e\\\xff"
                                 "BEXsfbeCM";
  size_t read = 0;
  for (int round = 0; round < 400; ++round) {
    std::string text = whole;
    for (size_t n = 1 + random() % 4; n > 0; --n)
      text[random() % text.size()] = bytes[random() % bytes.size()];
    if (round % 5 == 0)
      text.resize(random() % text.size());
    try {
      check_trace(text);
      const timeline t = read_trace(text);
      to_chrome_json(t);
      critical_path(t);
      ++read;
    } catch (const error& e) {
      CHECK(e.code() == errc::invalid_input);
    }
  }
  CHECK(read > 20);
}

TEST_CASE("the command shows, checks and compares traces", "[trace][cli]") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("troupe_traces_{}", getpid());
  std::filesystem::create_directories(folder);
  const std::string a = (folder / "a.json").string(), b = (folder / "b.json").string(),
                    bad = (folder / "bad.json").string();
  std::ofstream(a) << to_chrome_json(two_device_trace());
  std::ofstream(b) << to_chrome_json(two_device_trace());
  std::ofstream(bad) << R"([{"ph":"X","pid":1,"tid":1,"name":"a)"
                        "\x1b"
                        R"([2J","ts":1}])";
  CHECK(run_command("trace --check " + a + " " + b).status == 0);
  CHECK(run_command("trace --check " + bad, true).status == 1);
  CHECK(run_command("trace " + bad, true).status == 1);
  CHECK(run_command("trace " + a + " " + b, true).status == 2);
  CHECK(run_command("trace --diff " + a, true).status == 2);
  CHECK_THAT(run_command("trace " + a).output, Contains("longest nodes:"));
  const json diff = json::parse(run_command("trace --diff --json " + a + " " + b).output);
  CHECK(diff["slower"].size() + diff["faster"].size() + diff["unchanged"].get<size_t>() == 4);
  CHECK(run_command("trace " + a + " --html " + (folder / "a.html").string(), true).status == 0);
  CHECK(run_command("trace --diff " + a + " " + b + " --html " + (folder / "d.html").string(), true).status == 0);
  CHECK(std::filesystem::file_size(folder / "a.html") > 250'000);
  CHECK_THAT(run_command("trace " + (folder / "none.json").string(), true).output, Contains("cannot be read"));
  CHECK(run_command("run " + data_file("small_cnn.onnx") + " --devices cpu --trace " + (folder / "run.html").string(),
                    true)
            .status == 0);
  std::ifstream page(folder / "run.html");
  std::string first;
  std::getline(page, first);
  CHECK(first == "<!doctype html>");
  std::filesystem::remove_all(folder);
}
