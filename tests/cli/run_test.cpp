// troupe run, from the command line.
#include "support/catch.hpp"
#include "support/command.hpp"

using namespace troupe::test;
using Catch::Contains;

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
