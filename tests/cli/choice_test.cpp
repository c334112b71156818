// `--strategy auto` and `plan --compare` from the command line.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"

#include <nlohmann/json.hpp>

using namespace troupe::test;
using Catch::Contains;

namespace {

const std::string cnn = data_file("small_cnn.onnx") + " --devices 'cpu*2' --dim batch=4 ";

} // namespace

TEST_CASE("plan --compare lists every strategy and policy with its expected cost", "[cli][C10]") {
  const command_result r = run_command("plan " + cnn + "--compare --json");
  REQUIRE(r.status == 0);
  const auto all = nlohmann::json::parse(r.output);
  REQUIRE(all.size() == 11);
  CHECK(all[0]["strategy"] == "none"); // two devices on one CPU gain nothing
  for (const auto& c : all) {
    CHECK(c["possible"] == true);
    CHECK(c["latency_ms"] > 0);
    CHECK(c["requests_per_s"] > 0);
    CHECK(c["memory_bytes"] > 0);
    CHECK_FALSE(c["why"].get<std::string>().empty());
  }
  const command_result text = run_command("plan " + cnn + "--compare");
  CHECK_THAT(text.output, Contains("strategy") && Contains("model-parallel  round-robin") && Contains("cpu cpu#1"));
}

TEST_CASE("plan --compare refuses options that it would ignore", "[cli][C10]") {
  for (const std::string other : {"--dot", "--node x", "--load plan.json"})
    CHECK(run_command("plan " + cnn + "--compare " + other, true).status == 2);
  CHECK(run_command("plan " + cnn + "--compare --micro-batch 1").status == 0);
  CHECK_THAT(run_command("plan " + cnn + "--micro-batch 1", true).output, Contains("--strategy or --strategy-plugin"));
  const command_result pinned = run_command("run " + cnn + "--strategy data-parallel --pin '*=cpu#1'", true);
  CHECK(pinned.status == 2);
  CHECK_THAT(pinned.output, Contains("'*=cpu#1' cannot hold"));
  CHECK_THAT(run_command("run " + cnn + "--strategy auto --pin '*=cpu#1'").output, Contains("over cpu#1"));
}

TEST_CASE("auto runs the strategy that it has chosen and names it", "[cli][C10]") {
  const command_result run = run_command("run " + cnn + "--strategy auto --goal throughput");
  CHECK(run.status == 0);
  CHECK_THAT(run.output, Contains("strategy auto: none over cpu; predicted"));
  const command_result bench = run_command("bench " + cnn + "--strategy auto --runs 3 --warmup-seconds 0 --json");
  REQUIRE(bench.status == 0);
  CHECK(nlohmann::json::parse(bench.output)["choice"]["devices"].size() == 1);
  CHECK(run_command("verify " + cnn + "--strategy auto").status == 0);
  CHECK_THAT(run_command("plan " + cnn + "--strategy auto").output, Contains("cpu"));
}

TEST_CASE("limits that no plan keeps name the nearest one", "[cli][C10]") {
  const command_result r = run_command("run " + cnn + "--strategy auto --max-memory 1KiB", true);
  CHECK(r.status == 2);
  CHECK_THAT(r.output, Contains("bytes are more than 1024") && Contains("the nearest is"));
  CHECK_THAT(run_command("run " + cnn + "--strategy auto --max-latency 0.001", true).output,
             Contains("are longer than 0.001 ms"));
  CHECK(run_command("run " + cnn + "--strategy auto --goal speed", true).status == 2);
  CHECK(run_command("run " + cnn + "--strategy auto --max-devices 0", true).status == 2);
}
