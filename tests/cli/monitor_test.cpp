// The command's output about bottlenecks, devices and time.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"
#include "support/run_graph.hpp"
#include "troupe/tensor_file.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace troupe::test;
using Catch::Contains;
using nlohmann::json;

namespace {

const std::string cnn = data_file("small_cnn.onnx") + " --devices 'cpu*2' ";

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A model whose nodes each need the one before.
onnx::ModelProto chain_model(int nodes) {
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  auto& g = *m.mutable_graph();
  g.set_name("chain");
  set_tensor_type(*g.add_input(), "x0", {"n"});
  set_tensor_type(*g.add_output(), "x" + std::to_string(nodes), {"n"});
  for (int i = 0; i < nodes; ++i)
    add_node(g, "Relu", {"x" + std::to_string(i)}, {"x" + std::to_string(i + 1)});
  return m;
}

} // namespace

TEST_CASE("bench watches devices and pools", "[cli][C7][C8][C9]") {
  const scratch_folder folder;
  const auto metrics = folder.path() / "troupe.prom";
  const std::string bench = "bench " + cnn + "--dim batch=16 --runs 30 --warmup-seconds 0 --metrics '" +
                            metrics.string() + "' --monitor --strategy work-stealing";
  const command_result r = run_command(bench + " --json");
  REQUIRE(r.status == 0);
  const json j = json::parse(r.output);
  CHECK(j["gflops_per_s"] > 0);
  const json& many = j["throughput"];
  CHECK(many["gflops_per_s"].get<double>() / many["requests_per_s"].get<double>() ==
        Approx(j["gflops_per_s"].get<double>() * j["median_ms"].get<double>() / 1e3));
  const json& watched = j["monitor"];
  CHECK(watched["samples"] >= 2);
  CHECK(watched["requests_per_s"].get<double>() * watched["window_s"].get<double>() == Approx(30));
  REQUIRE(watched["devices"].size() == 2);
  CHECK(watched["devices"][0]["utilisation"] > 0);
  CHECK(watched["devices"][0]["pool"]["reserved_bytes"] > 0);
  CHECK(watched["findings"].is_array());
  CHECK_THAT(content(metrics), Contains("# TYPE troupe_requests_total counter\ntroupe_requests_total ") &&
                                   Contains("troupe_device_busy_seconds_total{device=\"cpu#1\"} ") &&
                                   Contains("troupe_replica_up{replica=\"cpu\"} 1\n"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1); // no file half written

  const command_result text = run_command(bench);
  CHECK(text.status == 0);
  CHECK_THAT(text.output, Contains("GFLOP/s") && Contains("fragmented") && Contains("samples in"));
  CHECK_FALSE(json::parse(run_command("bench " + cnn + "--runs 1 --warmup 0 --warmup-seconds 0 --json").output)
                  .contains("monitor"));
}

TEST_CASE("a stream is watched", "[cli][C8][C9]") {
  const scratch_folder in, out;
  for (int i = 0; i < 8; ++i)
    troupe::write_npy(in.path() / ("x" + std::to_string(i) + ".npy"),
                      random_tensor({2, 1, 8, 8}, static_cast<uint64_t>(i)));
  const std::string stream = "run " + cnn + "--strategy work-stealing --stream '" + in.path().string() + "' ";
  const auto metrics = out.path() / "deep" / "troupe.prom";
  const command_result r = run_command(stream + "--json --monitor --metrics '" + metrics.string() + "'");
  REQUIRE(r.status == 0);
  const json j = json::parse(r.output);
  CHECK(j["monitor"]["requests"] == 8);
  CHECK(j["monitor"]["rows_per_s"].get<double>() == Approx(2 * j["monitor"]["requests_per_s"].get<double>()));
  CHECK_THAT(content(metrics), Contains("\ntroupe_requests_total 8\n"));
  CHECK_THAT(run_command(stream + "--monitor").output, Contains("parallel efficiency"));
}

TEST_CASE("metrics that cannot be written, and options that mean nothing", "[cli][C9]") {
  const scratch_folder folder;
  folder.write("file", "no folder");
  const command_result r = run_command(
      "bench " + cnn + "--runs 1 --metrics '" + (folder.path() / "file" / "troupe.prom").string() + "'", true);
  CHECK(r.status == 1);
  CHECK_THAT(r.output, Contains("the metrics cannot be written to"));
  CHECK(run_command("run " + cnn + "--monitor", true).status == 2);
}

TEST_CASE("profile names the causes that slow a model down", "[cli][C9]") {
  const scratch_folder folder;
  const std::string path = (folder.path() / "chain.onnx").string();
  folder.write("chain.onnx", chain_model(64).SerializeAsString());
  // A node takes less than a microsecond, and each is a message to and from another device.
  const std::string profile = "profile '" + path + "' --devices 'cpu*2' --policy round-robin --no-fuse";
  const command_result r = run_command(profile + " --json");
  REQUIRE(r.status == 0);
  const json found = json::parse(r.output)["bottlenecks"];
  REQUIRE(found.is_array());
  const auto chunks =
      std::find_if(found.begin(), found.end(), [](const json& f) { return f["cause"] == "small_chunks"; });
  REQUIRE(chunks != found.end());
  CHECK((*chunks)["gain"] >= 0.1);
  const command_result text = run_command(profile);
  CHECK(text.status == 0);
  CHECK_THAT(text.output, Contains("starting and answering them takes") && Contains("would save"));
}
