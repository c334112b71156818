// troupe run, from the command line.
#include "support/catch.hpp"
#include "support/command.hpp"
#include "troupe/tensor_file.hpp"

#include <filesystem>
#include <unistd.h>

using namespace troupe::test;
using Catch::Contains;

namespace {

const std::string decoder =
    "run " + data_file("decoder.onnx") + " --bind present=past --dim past=2 --dim total=3 --grow total=1";

/// Runs a decoder with these options; returns its state after the last step.
troupe::tensor state_after(const std::string& options) {
  const auto folder = std::filesystem::temp_directory_path() / ("troupe_decoder_" + std::to_string(getpid()));
  const command_result r = run_command(decoder + " --output '" + folder.string() + "' " + options, true);
  INFO(r.output);
  REQUIRE(r.status == 0);
  troupe::tensor state = troupe::read_npy(folder / "present.npy");
  std::filesystem::remove_all(folder);
  return state;
}

} // namespace

TEST_CASE("a time limit on the command line may be of any length, but not negative", "[cli]") {
  const std::string run = "run " + data_file("small_cnn.onnx") + " --devices cpu --timeout ";
  for (const char* limit : {"1e300", "0", "600"}) {
    const command_result r = run_command(run + limit);
    INFO(limit << ": " << r.output);
    CHECK(r.status == 0);
  }
  const command_result refused = run_command(run + "-1", true);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.output, Contains("--timeout"));
}

TEST_CASE("the command runs a decoder step by step, and its state grows", "[cli][B7]") {
  const troupe::tensor one = state_after("--devices cpu"), five = state_after("--devices cpu --steps 5 --checkpoint 2");
  CHECK(one.dims() == troupe::shape{3, 4});
  REQUIRE(five.dims() == troupe::shape{7, 4});
  CHECK(std::equal(one.values<float>().begin(), one.values<float>().end(), five.values<float>().begin()));
  CHECK_THAT(run_command(decoder + " --devices cpu --steps 3").output, Contains("3 runs of"));
  const command_result refused = run_command("run " + data_file("decoder.onnx") + " --steps 3", true);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.output, Contains("--bind"));
}

TEST_CASE("the command runs a model for a part of its outputs", "[cli]") {
  const std::string run =
      "run " + data_file("decoder.onnx") + " --dim past=2 --dim total=3 --devices cpu --output-slice ";
  const command_result last = run_command(run + "present=0:-1:");
  INFO(last.output);
  CHECK(last.status == 0);
  CHECK_THAT(last.output, Contains("[1, 4]"));
  for (const std::string wrong :
       {"present", "present=", "present=0", "present=0:1", "present=0:1:2:3", "present=a:1:2", "present=0:-:2",
        "present=0:99999999999999999999:2", "present=7:0:1", "absent=0:0:1"}) {
    const command_result refused = run_command(run + wrong, true);
    INFO(wrong << ": " << refused.output);
    CHECK(refused.status == 2);
  }
}
