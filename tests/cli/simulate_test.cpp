// `simulate`, `cluster` and `compare` from the command line.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"
#include "support/places.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

using namespace troupe::test;
using Catch::Contains;

namespace {

const std::string cnn = data_file("small_cnn.onnx");

/// A folder of this test alone, empty.
std::filesystem::path fresh_folder(const std::string& name) {
  const auto folder = std::filesystem::temp_directory_path() / ("troupe_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

} // namespace

TEST_CASE("a cluster that was captured is simulated as its plans predict", "[cli][sim]") {
  const auto folder = fresh_folder("captured");
  const std::string file = (folder / "here.json").string();
  REQUIRE(run_command("cluster --capture " + file + " --devices 'cpu*2'").status == 0);
  CHECK_THAT(run_command("cluster --show " + file).output, Contains("cpu#1"));
  const command_result r = run_command("simulate " + cnn + " --dim batch=8 --devices cpu --json --cluster " + file);
  REQUIRE(r.status == 0);
  const auto j = nlohmann::json::parse(r.output);
  CHECK(j["makespan_ms"] > 0);
  CHECK(j["failed"] == 0);
  CHECK(j["devices"].size() == 2);
  // Two CPU devices share the threads.
  const command_result plan = run_command("plan " + cnn + " --dim batch=8 --devices 'cpu*2' --json");
  const double predicted = nlohmann::json::parse(plan.output)["predicted_ms"];
  CHECK(j["makespan_ms"].get<double>() == Approx(predicted).epsilon(0.01));
}

TEST_CASE("simulate takes strategies, arrivals, losses and noise", "[cli][sim]") {
  const auto folder = fresh_folder("simulated");
  const std::string file = (folder / "c.json").string();
  write(file, R"({"version": 1, "hosts": [{"devices": [{"name": "c", "count": 3, "kind": "cpu", )"
              R"("memory_bytes": 1000000000}]}]})");
  const std::string base = "simulate " + cnn + " --dim batch=12 --cluster " + file;
  CHECK_THAT(run_command(base + " --strategy auto --goal throughput --requests 9 --arrivals closed:3").output,
             Contains("strategy auto: data-parallel") && Contains("9 requests (0 failed)"));
  CHECK_THAT(
      run_command(base + " --strategy work-stealing --requests 5 --arrivals poisson:100 --noise 0.2 --fail c:1@5-20")
          .output,
      Contains("5 requests (0 failed)"));
  const std::string page = (folder / "t.json").string();
  CHECK(run_command(base + " --policy round-robin --trace " + page).status == 0);
  CHECK(std::filesystem::file_size(page) > 100);
  CHECK(run_command(base + " --fail c:1", true).status == 2);
  CHECK(run_command(base + " --fail c:9@1", true).status == 2);
  CHECK(run_command(base + " --arrivals poisson:x", true).status == 2);
  CHECK(run_command(base + " --arrivals nothing", true).status == 1);
  CHECK_THAT(run_command("simulate " + cnn + " --cluster /nowhere.json", true).output,
             Contains("'/nowhere.json' cannot be read"));
  CHECK(run_command("cluster", true).status == 2);
}

TEST_CASE("simulate writes graphs and schedules for tools of others, and plays workloads", "[cli][sim][formats]") {
  const auto folder = fresh_folder("formats");
  const std::string file = (folder / "c.json").string();
  write(file, R"({"version": 1, "hosts": [{"devices": [{"name": "c", "count": 2, "kind": "cpu", )"
              R"("memory_bytes": 1000000000}]}]})");
  const std::string base = "simulate graph:fft,points=8 --policy round-robin --cluster " + file;
  const auto content = [&](const char* name) {
    std::ifstream in(folder / name);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string at = folder.string() + "/";
  CHECK(run_command(base + " --save-graph " + at + "g.dot --trace " + at + "t.paje").status == 0);
  CHECK_THAT(content("g.dot"), Contains("digraph \"fft\" {"));
  CHECK_THAT(content("t.paje"), Contains("%EventDef PajeDefineContainerType 0"));
  CHECK(run_command("simulate graph:" + at + "g.dot --cluster " + file + " --trace " + at + "t.rec").status == 0);
  CHECK_THAT(content("t.rec"), Contains("SubmitOrder: 1"));
  CHECK(run_command(base + " --trace " + at + "t.et").status == 0);
  CHECK((!content("t.0.et").empty() && !content("t.1.et").empty()));
  CHECK(run_command(base + " --save-graph " + at + "g.xml", true).status == 2);
  CHECK_THAT(run_command("simulate " + cnn + " --save-graph " + at + "g.dot --cluster " + file, true).output,
             Contains("is no task graph"));
  write(folder / "w.csv", "arrival,rows,deadline\n0,4,\n1,2,1e-9\n");
  CHECK_THAT(
      run_command("simulate " + cnn + " --strategy work-stealing --cluster " + file + " --arrivals " + at + "w.csv")
          .output,
      Contains("2 requests (1 failed)") && Contains("1 requests had no answer by their deadlines"));
}

TEST_CASE("compare runs what an experiment lists and tells what is faster", "[cli][sim]") {
  const auto folder = fresh_folder("compared");
  write(folder / "c.json", R"({"version": 1, "hosts": [{"devices": [{"name": "c", "count": 4, "kind": "cpu", )"
                           R"("memory_bytes": 1000000000}]}]})");
  write(folder / "e.json", R"({"troupe_experiment": 1, "models": [")" + cnn.substr(1, cnn.size() - 2) +
                               R"("], "dims": {"batch": 64}, "clusters": ["c.json"],
    "devices": ["cpu*2"], "mode": "both", "strategies": ["none", "data-parallel"],
    "policies": ["single", "round-robin"], "repetitions": 3})");
  const std::string csv = (folder / "r.csv").string(), page = (folder / "r.html").string();
  const command_result r =
      run_command("compare " + (folder / "e.json").string() + " --json --csv " + csv + " --page " + page);
  REQUIRE(r.status == 0);
  const auto j = nlohmann::json::parse(r.output);
  CHECK(j["settings"].size() >= 8);
  CHECK(std::filesystem::file_size(page) > 10000);
  std::ifstream lines(csv);
  size_t count = 0;
  for (std::string line; std::getline(lines, line);)
    ++count;
  CHECK(count == 1 + 3 * j["settings"].size());
  CHECK_THAT(run_command("compare " + (folder / "e.json").string()).output, Contains("faster") || Contains("slower"));
  write(folder / "mine.json", R"({"troupe_experiment": 1, "models": [")" + cnn.substr(1, cnn.size() - 2) +
                                  R"("], "dims": {"batch": 64}, "clusters": ["c.json"],
    "strategies": ["data-parallel", "plug-in"], "policies": ["single", "plug-in"], "repetitions": 1})");
  const std::string mine = "compare " + (folder / "mine.json").string(), plugins = test_plugins() + "/";
  const command_result unnamed = run_command(mine + " --policy-plugin " + plugins + "last_device.so", true);
  CHECK(unnamed.status == 2);
  CHECK_THAT(unnamed.output, Contains("--strategy-plugin"));
  const command_result named = run_command(mine + " --json --policy-plugin " + plugins +
                                           "last_device.so --strategy-plugin " + plugins + "my_strategy.so");
  REQUIRE(named.status == 0);
  const auto with_plugins = nlohmann::json::parse(named.output);
  CHECK(with_plugins["settings"].size() == 4);
  CHECK(with_plugins["problems"].empty());
  CHECK_THAT(named.output, Contains("my_strategy.so")); // recorded with its hash
  // A real run's requests come when the list says: the last one no earlier than its time.
  write(folder / "listed.json", R"({"troupe_experiment": 1, "models": [")" + cnn.substr(1, cnn.size() - 2) +
                                    R"("], "dims": {"batch": 1},
    "devices": ["cpu"], "mode": "real", "requests": {"times": [0, 0, 0.2]}, "repetitions": 2})");
  const command_result listed = run_command("compare " + (folder / "listed.json").string() + " --json");
  REQUIRE(listed.status == 0);
  const auto at_times = nlohmann::json::parse(listed.output);
  REQUIRE(at_times["settings"].size() == 1);
  CHECK(at_times["settings"][0]["mode"] == "real");
  CHECK(at_times["settings"][0]["seconds"]["least_s"].get<double>() >= 0.2);
  write(folder / "bad.json", R"({"troupe_experiment": 1, "models": [], "clusters": ["c.json"]})");
  CHECK_THAT(run_command("compare " + (folder / "bad.json").string(), true).output, Contains("models"));
}

TEST_CASE("an adversary finds where a policy loses, and keeps it", "[cli][adversary]") {
  const auto folder = fresh_folder("adversary");
  const std::string file = (folder / "worst.json").string();
  const command_result found = run_command("compare --adversary heft,cpop --seed 7 --save " + file);
  REQUIRE(found.status == 0);
  CHECK_THAT(found.output, Contains("heft takes ") && Contains(" times as long as cpop") && Contains("seed 7"));
  const command_result again = run_command("compare --json " + file);
  REQUIRE(again.status == 0);
  const auto j = nlohmann::json::parse(again.output);
  CHECK(j["ratio"].get<double>() > 1.2);
  CHECK(j["ratio"].get<double>() ==
        Approx(j["makespans"]["heft"].get<double>() / j["makespans"]["cpop"].get<double>()));
  for (const auto& [name, makespan] : j["makespans"].items())
    CHECK(makespan.get<double>() >= j["makespans"]["optimal"].get<double>());
  const nlohmann::json other =
      nlohmann::json::parse(run_command("compare --adversary heft,cpop --seed 7 --json").output);
  CHECK(other == j);
  CHECK_THAT(run_command("compare --adversary heft,fast", true).output, Contains("unknown policy 'fast'"));
  CHECK_THAT(run_command("compare --adversary heft", true).output, Contains("--adversary"));
  CHECK_THAT(run_command("compare --seed 2 " + file, true).output, Contains("--adversary"));
  CHECK_THAT(run_command("compare", true).output, Contains("--adversary"));
}
