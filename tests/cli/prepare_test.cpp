// troupe prepare, from the command line.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"

#include <nlohmann/json.hpp>

using namespace troupe::test;
using Catch::Contains;

namespace {

const std::string cnn = data_file("small_cnn.onnx");

} // namespace

TEST_CASE("a model is prepared for sizes that are to come", "[cli]") {
  const command_result one = run_command("prepare " + cnn + " --devices cpu --sizes batch=3");
  CHECK(one.status == 0);
  CHECK_THAT(one.output, Contains("1 size prepared in "));
  const command_result many = run_command("prepare " + cnn + " --devices cpu --sizes batch=1..9/4 --json");
  INFO(many.output);
  REQUIRE(many.status == 0);
  CHECK(nlohmann::json::parse(many.output)["sizes"] == 3); // 1, 5 and 9
}

TEST_CASE("sizes that cannot be prepared are refused", "[cli]") {
  const auto refused = [](const std::string& sizes, const std::string& because) {
    const command_result r = run_command("prepare " + cnn + " --devices cpu --sizes " + sizes, true);
    INFO(sizes << ": " << r.output);
    CHECK(r.status != 0);
    CHECK_THAT(r.output, Contains(because));
  };
  for (const char* text : {"batch", "batch=", "batch=a", "batch=4..2", "batch=1..8/0", "batch=1..8x", "batch=-1"})
    refused(text, "is not NAME=SIZE");
  refused("batch=1..99999", "more than 10000 sizes");
  refused("rows=1..4", "rows");
}
