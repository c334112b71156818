// Streams and strategies from the command line.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"
#include "support/run_graph.hpp"
#include "troupe/tensor_file.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

using namespace troupe::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

const std::string cnn = data_file("small_cnn.onnx") + " --devices 'cpu*2' ";

/// A folder of `count` requests, x0.npy …, of one to three rows, and a file that is not a request.
void write_requests(const fs::path& folder, int count) {
  for (int i = 0; i < count; ++i)
    troupe::write_npy(folder / ("x" + std::to_string(i) + ".npy"),
                      random_tensor({1 + i % 3, 1, 8, 8}, static_cast<uint64_t>(i)));
}

troupe::tensor probabilities(const fs::path& folder) {
  return troupe::read_npy(folder / "probabilities.npy");
}

} // namespace

TEST_CASE("a folder of inputs is streamed, and one that is damaged hurts no other", "[cli][C1][C4]") {
  const scratch_folder in, out;
  write_requests(in.path(), 12);
  in.write("y.npy", "no tensor");
  const command_result r =
      run_command("run " + cnn + "--strategy work-stealing --max-batch 8 --max-delay 1 --stream '" +
                      in.path().string() + "' --output '" + out.path().string() + "' --json",
                  false);
  CHECK(r.status == 1);
  const auto report = nlohmann::json::parse(r.output);
  CHECK(report["requests"] == 13);
  CHECK(report["failed"] == 1);
  CHECK(report["replicas"].size() == 2);
  for (int i = 0; i < 12; ++i) {
    const std::string name = "x" + std::to_string(i);
    const scratch_folder alone;
    const command_result one = run_command("run " + cnn + "--input image='" + (in.path() / (name + ".npy")).string() +
                                           "' --output '" + alone.path().string() + "'");
    REQUIRE(one.status == 0);
    const troupe::tensor got = probabilities(out.path() / name), want = probabilities(alone.path());
    REQUIRE(got.dims() == want.dims());
    for (int64_t e = 0; e < got.size(); ++e)
      CHECK(got.values<float>()[e] == Approx(want.values<float>()[e]).margin(1e-6));
  }
}

TEST_CASE("names of inputs may come from stdin", "[cli]") {
  const scratch_folder in;
  write_requests(in.path(), 2);
  in.write("names", (in.path() / "x0.npy").string() + "\n" + (in.path() / "x1.npy").string() + "\nmissing.npy\n");
  const command_result r = run_command("run " + cnn + "--stream - < '" + (in.path() / "names").string() + "'", true);
  CHECK(r.status == 1);
  CHECK_THAT(r.output, Contains("3 requests, 1 failed") && Contains("missing.npy"));
}

TEST_CASE("bench prints the throughput of a strategy", "[cli][C8]") {
  const std::string bench = "bench " + cnn + "--dim batch=16 --runs 3 --warmup-seconds 0 --strategy ";
  for (const char* how : {"data-parallel", "model-parallel", "work-stealing"}) {
    const command_result r = run_command(bench + how);
    INFO(how << ": " << r.output);
    CHECK(r.status == 0);
    CHECK_THAT(r.output, Contains("throughput") && Contains("parallel efficiency") && Contains("ms a row"));
  }
  const command_result piped = run_command(bench + "pipeline --micro-batch 2 --json");
  REQUIRE(piped.status == 0);
  const auto pipeline = nlohmann::json::parse(piped.output)["throughput"]["pipeline"];
  CHECK(pipeline["stages"] == 2);
  CHECK(pipeline["micro_batches"] == 8);
  CHECK(pipeline["bubble"] == Approx(1.0 / 9));
  // The prediction of a whole batch says nothing about one that is cut.
  CHECK_THAT(piped.output, !Contains("predicted_ms"));
  CHECK_THAT(run_command("bench " + cnn + "--dim batch=16 --runs 3 --warmup-seconds 0 --json").output,
             Contains("predicted_ms"));
}

TEST_CASE("a device that only helps out is not a stage of a pipeline", "[cli][vulkan][C3]") {
  const std::string two = "bench " + data_file("small_cnn.onnx") + " --devices 'vulkan:0*2' --dim batch=16 ";
  const command_result r = run_command(two + "--runs 3 --warmup-seconds 0 --strategy pipeline --micro-batch 2 --json");
  INFO(r.output);
  REQUIRE(r.status == 0);
  const auto pipeline = nlohmann::json::parse(r.output)["throughput"]["pipeline"];
  CHECK(pipeline["stages"] == 2); // and the CPU
  CHECK(pipeline["bubble"] == Approx(1.0 / 9));
}

TEST_CASE("verify tries every strategy, and plan says its pieces", "[cli][C1][C2][C3][C4]") {
  const command_result verified = run_command("verify " + cnn + "--dim batch=5");
  INFO(verified.output);
  CHECK(verified.status == 0);
  for (const char* how : {"data-parallel", "model-parallel", "pipeline", "work-stealing"})
    CHECK_THAT(verified.output, Contains(std::string("cpu*2, ") + how));
  CHECK_THAT(verified.output, Contains("; pieces by replica: 4)"));
  const command_result cut = run_command("verify " + cnn + "--dim batch=5 --strategy pipeline --micro-batch 1");
  CHECK(cut.status == 0);
  CHECK_THAT(cut.output, Contains("; pieces by replica: 20)") && !Contains("round-robin"));
  const command_result planned = run_command("plan " + cnn + "--dim batch=8 --strategy data-parallel");
  CHECK_THAT(planned.output, Contains("replica 1: cpu#1") && Contains("rows of 'batch' are independent: pieces of 4"));
}

TEST_CASE("options of strategies that make no sense are wrong calls", "[cli]") {
  const auto refused = [](const std::string& options) {
    const command_result r = run_command("run " + cnn + options, true);
    CHECK(r.status == 2);
    return r.output;
  };
  CHECK_THAT(refused("--strategy magic"), Contains("'magic'") && Contains("work-stealing"));
  CHECK_THAT(refused("--micro-batch 2"), Contains("--strategy"));
  CHECK_THAT(refused("--strategy pipeline --schedule whenever"), Contains("--schedule"));
  CHECK_THAT(refused("--strategy pipeline --depth -1"), Contains("--depth"));
  CHECK_THAT(refused("--stream . --trace t.json"), Contains("--trace"));
}
