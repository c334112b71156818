// troupe profile, from the command line.
#include "cost/profile_file.hpp"
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"

#include <nlohmann/json.hpp>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;
using nlohmann::json;

TEST_CASE("kept times of a model's nodes are those of its predictions", "[cli][A14][C6]") {
  const scratch_folder folder;
  const auto file = folder.path() / "profiles.json";
  const std::string command =
      "profile " + data_file("small_cnn.onnx") + " --devices cpu --runs 1 --json --file " + file.string();
  const command_result kept = run_command(command + " --keep");
  INFO(kept.output);
  REQUIRE(kept.status == 0);
  std::vector<measured_profile> all = load_profiles(file).devices;
  REQUIRE(all.size() == 1);
  REQUIRE_FALSE(all[0].nodes.nodes.empty());
  CHECK(json::parse(kept.output).at("kept").at(0).at("nodes") == all[0].nodes.nodes.size());
  CHECK_FALSE(all[0].nodes.operators.empty());

  // In place of measured times, which cannot be foreseen: a second a node, and nothing by operator.
  for (auto& [key, seconds] : all[0].nodes.nodes)
    seconds = 1;
  all[0].nodes.operators.clear();
  std::filesystem::remove(file);
  store_profiles(file, all);
  const json predicted = json::parse(run_command(command).output);
  CHECK(predicted.at("kept").empty());
  double nodes = 0;
  for (const json& row : predicted.at("operators"))
    if (row["predicted_ms"] > 0) { // views take none
      CHECK(row["predicted_ms"].get<double>() == Approx(1e3 * row["nodes"].get<double>()));
      nodes += row["nodes"].get<double>();
    }
  CHECK(nodes > 5);
  CHECK(predicted["predicted_ms"].get<double>() == Approx(1e3 * nodes).epsilon(1e-3));
}

TEST_CASE("troupe profile says why it cannot do something", "[cli]") {
  CHECK_THAT(run_command("profile --calibrate --keep", true).output, Contains("calibrate first"));
  CHECK_THAT(run_command("profile --keep", true).output, Contains("needs a model"));
  CHECK_THAT(run_command("profile " + data_file("small_cnn.onnx") + " --devices null --keep", true).output,
             Contains("no device runs a node"));
}
