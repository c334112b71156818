#include "experiments/experiment_file.hpp"

#include "support/catch.hpp"
#include "support/places.hpp"
#include "troupe/error.hpp"

#include <fmt/format.h>

#include <fstream>
#include <unistd.h>

using namespace troupe;
using namespace troupe::experiments;
using Catch::Contains;

namespace {

experiment parse(const std::string& text) {
  return parse_experiment(text, "exp.json", "/folder");
}

/// An experiment with one model on one device, and with the given members.
std::string with(const std::string& members) {
  const std::string common = R"({"troupe_experiment": 1, "models": ["m.onnx"], "devices": ["cpu"])";
  return common + (members.empty() ? "" : ", ") + members + "}";
}

} // namespace

TEST_CASE("an experiment lists the values that are combined", "[experiment]") {
  const experiment e = parse(R"({
    "troupe_experiment": 1, "name": "policies",
    "models": ["a.onnx", {"file": "/models/b.onnx", "dims": {"seq": 128}}],
    "dims": [{"batch": 1}, {"batch": 8}],
    "clusters": ["two.json"], "devices": ["cpu", ["vulkan:0*2", "cpu"]],
    "policies": ["single", "heft"], "strategies": ["none", "work-stealing"],
    "requests": {"count": 100, "per_second": 50}, "repetitions": 7, "seed": 3, "noise": 0.05, "mode": "both",
    "baseline": {"policy": "heft"}})");
  CHECK(e.name == "policies");
  CHECK(e.requests == 100);
  CHECK(e.arrivals.how == arrivals::process::poisson);
  CHECK(e.arrivals.per_second == 50);
  CHECK(e.repetitions == 7);
  CHECK(e.seed == 3);
  CHECK(e.noise == 0.05);
  // Model a with two dims and b with one; the cluster is simulated, the two device lists are run too; two policies, two
  // strategies.
  CHECK(e.settings.size() == 3 * (1 + 2 * 2) * 2 * 2);
  const setting& first = e.settings[0];
  CHECK(first.model == "/folder/a.onnx");
  CHECK(first.dims == bindings{{"batch", 1}});
  CHECK(std::get<std::filesystem::path>(first.where) == "/folder/two.json");
  CHECK(to_string(first.where) == "two.json");
  CHECK(first.policy == placement_policy::heft); // the baseline
  CHECK(first.strategy == strategy::none);
  CHECK(first.baseline == 0);
  CHECK(e.settings[3].baseline == 0);
  CHECK(e.settings[4].baseline == 4);
  const setting& last = e.settings.back();
  CHECK(last.model == "/models/b.onnx");
  CHECK(last.dims == bindings{{"seq", 128}}); // its own alone
  CHECK(std::get<device_list>(last.where) == device_list{"vulkan:0*2", "cpu"});
  CHECK(to_string(last.where) == "vulkan:0*2,cpu");
  CHECK(last.mode == mode::real);
  for (const setting& s : e.settings)
    CHECK((s.mode == mode::simulated || std::holds_alternative<device_list>(s.where)));
}

TEST_CASE("an experiment needs a model and a target", "[experiment]") {
  const experiment e = parse(with(""));
  CHECK(e.name == "exp.json");
  CHECK(e.repetitions == 5);
  CHECK(e.seed == 1);
  CHECK(e.noise == 0);
  CHECK(e.requests == 1);
  CHECK(e.arrivals.how == arrivals::process::closed);
  CHECK(e.arrivals.in_flight == 1);
  REQUIRE(e.settings.size() == 1);
  CHECK(e.settings[0].policy == placement_policy::single);
  CHECK(e.settings[0].strategy == strategy::none);
  CHECK(e.settings[0].mode == mode::simulated);
  CHECK(e.settings[0].dims.empty());
}

TEST_CASE("settings that a strategy does not tell apart are one setting", "[experiment]") {
  const experiment e =
      parse(with(R"("policies": ["single", "heft", "dmda"], "strategies": ["pipeline", "model-parallel"])"));
  REQUIRE(e.settings.size() == 3);
  CHECK(e.settings[0].policy == placement_policy::pipeline);
  CHECK(e.settings[1].policy == placement_policy::heft); // of single too
  CHECK(e.settings[2].policy == placement_policy::dmda);
}

TEST_CASE("a wrong experiment is refused with the place and the allowed values", "[experiment]") {
  const auto refused = [](const std::string& text, const std::string& place, const std::string& why) {
    INFO(text);
    CHECK_THROWS_WITH(parse(text), Contains("exp.json: " + place) && Contains(why));
  };
  refused("{\n  \"name\" 7\n}", "not JSON", "line 2, column 10: '7' is wrong there; correct");
  refused("[]", "the file", "an object is needed, with troupe_experiment");
  refused(R"({"models": ["m"], "devices": ["cpu"]})", "the file", "'troupe_experiment' is missing");
  refused(R"({"troupe_experiment": 2})", "troupe_experiment", "a whole number from 1 to 1 is needed");
  refused(R"({"troupe_experiment": 1})", "the file", "'models' is missing");
  refused(R"({"troupe_experiment": 1, "models": ["m"]})", "the file", "'clusters' (files) or 'devices'");
  refused(R"({"troupe_experiment": 1, "models": [], "devices": ["cpu"]})", "models", "a list of 0; 1 to");
  refused(R"({"troupe_experiment": 1, "models": ["m", 7]})", "models[1]", "an object is needed, with file, dims");
  refused(R"({"troupe_experiment": 1, "models": [{"file": "m", "dims": {"batch": -1}}]})", "models[0].dims.batch",
          "a whole number from 0");
  refused(with(R"("dims": [{"batch": 1}, {"batch": "8"}])"), "dims[1].batch", "a whole number from 0");
  refused(with(R"("policy": "heft")"), "the file", "there is no 'policy'; there are troupe_experiment, name, models");
  refused(with(R"("policies": ["single", "fastest"])"), "policies[1]", "unknown policy 'fastest'; known are: single");
  refused(with(R"("policies": ["single", "fastest"])"), "policies[1]",
          "dls, split, lookahead, iheft, hbmct, dcp, optimal, plug-in");
  refused(with(R"("strategies": ["some"])"), "strategies[0]", "model-parallel, pipeline, work-stealing, plug-in");
  refused(with(R"("strategies": ["standard"])"), "strategies[0]", "takes another one by itself");
  refused(with(R"("mode": "fast")"), "mode", "there are simulated, real, both");
  refused(with(R"("repetitions": 0)"), "repetitions", "a whole number from 1 to 10000");
  refused(with(R"("repetitions": 1.5)"), "repetitions", "a whole number");
  refused(with(R"("seed": 18446744073709551615)"), "seed", "a whole number from 0");
  refused(with(R"("noise": -0.1)"), "noise", "a number from 0 to 10");
  refused(with(R"("requests": {"count": 1, "in_flight": 2, "per_second": 3})"), "requests", "exclude each other");
  refused(with(R"("baseline": {"policy": "heft"})"), "baseline.policy", "'heft' is not listed");
}

TEST_CASE("an experiment's requests may come at listed times", "[experiment]") {
  const auto refused = [](const std::string& text, const std::string& place, const std::string& why) {
    INFO(text);
    CHECK_THROWS_WITH(parse(text), Contains("exp.json: " + place) && Contains(why));
  };
  const experiment e = parse(with(R"("requests": {"times": [0, 0.5, 0.5, 2]})"));
  CHECK(e.requests == 4);
  CHECK(e.arrivals.how == arrivals::process::listed);
  CHECK(e.arrivals.times_s == std::vector<double>{0, 0.5, 0.5, 2});
  refused(with(R"("requests": {"times": [0, 2, 1]})"), "requests.times[2]", "a number from 2 to");
  refused(with(R"("requests": {"times": [-1]})"), "requests.times[0]", "a number from 0 to");
  refused(with(R"("requests": {"times": []})"), "requests.times", "a list of 0");
  refused(with(R"("requests": {"count": 2, "times": [0, 1]})"), "requests", "'times' stands alone");
  refused(with(R"("requests": {"times": "none.txt"})"), "requests.times", "cannot be read");
}

TEST_CASE("listed times of a file are checked by line", "[experiment][sim]") {
  const auto file = std::filesystem::temp_directory_path() / fmt::format("troupe_times_{}", getpid());
  const auto times_of = [&](const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
    return parse(with(fmt::format(R"("requests": {{"times": "{}"}})", file.string()))).arrivals.times_s;
  };
  CHECK(times_of("0\n\n0.25\r\n1e1") == std::vector<double>{0, 0.25, 10});
  CHECK_THROWS_WITH(times_of("1\nsoon\n"), Contains("requests.times") && Contains("line 2: 'soon' is not a number"));
  CHECK_THROWS_WITH(times_of("2\n1\n"), Contains("line 2: earlier"));
  CHECK_THROWS_WITH(times_of("nan\n"), Contains("line 1: a time from 0"));
  CHECK_THROWS_WITH(times_of("inf\n"), Contains("line 1: a time from 0"));
  CHECK_THROWS_WITH(times_of(std::string(100'000, '0')), Contains("line 1: longer than 64 characters"));
  CHECK_THROWS_WITH(times_of("\n"), Contains("no times"));
  std::filesystem::remove(file);
}

TEST_CASE("clusters of files are simulated only, and noise too", "[experiment]") {
  const std::string cluster = R"({"troupe_experiment": 1, "models": ["m"], "clusters": ["c.json"], )";
  CHECK(parse(cluster + R"("mode": "simulated"})").settings.size() == 1);
  CHECK_THROWS_WITH(parse(cluster + R"("mode": "both"})"), Contains("exp.json: mode: real runs need 'devices'"));
  const std::string made_up = R"({"troupe_experiment": 1, "models": ["graph:lu,tiles=3", "m"], "devices": ["cpu"], )";
  CHECK(parse(made_up + R"("mode": "both"})").settings.size() == 3); // the graph once
  CHECK(parse(made_up + R"("mode": "both"})").settings[0].model == "graph:lu,tiles=3");
  CHECK_THROWS_WITH(parse(made_up + R"("mode": "real"})"), Contains("models: made-up graphs can only be simulated"));
  CHECK_THROWS_WITH(
      parse(R"({"troupe_experiment": 1, "models": ["graph:qr"], "devices": ["cpu"], "mode": "simulated"})"),
      Contains("models[0]: 'graph:qr': there is no made-up graph 'qr'"));
  CHECK(parse(cluster + R"("devices": ["cpu"], "mode": "both"})").settings.size() == 3);
  CHECK_THROWS_WITH(parse(cluster + R"("devices": ["cpu"], "mode": "real"})"), Contains("exp.json: clusters: "));
  CHECK_THROWS_WITH(parse(with(R"("mode": "real", "noise": 0.1)")), Contains("exp.json: noise: "));
}

TEST_CASE("hostile experiments end with an error, soon", "[experiment]") {
  std::string models, deep(100'000, '[');
  for (int i = 0; i < 1000; ++i)
    models += fmt::format("{}\"m{}\"", i ? "," : "", i);
  std::string dims;
  for (int i = 0; i < 1000; ++i)
    dims += fmt::format("{}{{\"batch\": {}}}", i ? "," : "", i);
  const std::string all = R"({"troupe_experiment": 1, "devices": ["cpu"], "models": [)" + models + "]";
  CHECK_THROWS_WITH(parse(all + R"(, "dims": [)" + dims + "]}"), Contains("more than 10000 combinations"));
  CHECK_THROWS_WITH(parse(all + R"(, "repetitions": 10000})"), Contains("more than 1000000 runs"));
  CHECK_THROWS_WITH(parse(deep), Contains("exp.json: more than 16 lists"));
  CHECK_THROWS_WITH(parse(with("\"dims\": {\"" + std::string(300, 'n') + "\": 1}")), Contains("dims: a name of 300"));
  CHECK_THROWS_WITH(parse(with("\"name\": \"" + std::string(5000, 'n') + "\"")),
                    Contains("name: a text of 5000 bytes; 1 to 4096"));
  CHECK_THROWS_WITH(parse(with(R"("noise": 1e999)")), Contains("not JSON: a number is larger"));
  CHECK_THROWS_AS(parse("{\"troupe_experiment\": \"\xff\"}"), error);
}

TEST_CASE("an experiment file's models are beside it", "[experiment]") {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("troupe_experiment_{}", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "e.json") << with("");
  CHECK(read_experiment(folder / "e.json").settings.at(0).model == folder / "m.onnx");
  std::filesystem::resize_file(folder / "e.json", (1 << 24) + 1);
  CHECK_THROWS_WITH(read_experiment(folder / "e.json"), Contains("larger than 16777216 bytes"));
  CHECK_THROWS_WITH(read_experiment(folder / "absent.json"), Contains("absent.json' cannot be read"));
  CHECK_THROWS_AS(read_experiment(folder), error);
  std::filesystem::remove_all(folder);
}

TEST_CASE("the example's experiment can be read", "[experiment]") {
  const std::filesystem::path data(test::test_data());
  const experiment e = read_experiment(data / "../../examples/experiments/digits.json");
  CHECK(e.requests == 100);
  CHECK(e.arrivals.in_flight == 4);
  CHECK(e.settings.size() == 2 * 2 * 4); // dims, modes, policies and strategies
  CHECK(std::filesystem::exists(e.settings[0].model));
}
