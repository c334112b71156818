// --record and troupe replay, from the command line.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

/// A model in a folder, and recordings of runs of it.
struct recorded_model : scratch_folder {
  recorded_model() { write("model.onnx", relu_model().SerializeAsString()); }

  std::string model() const { return "'" + (path() / "model.onnx").string() + "'"; }
  command_result run(const std::string& options) const {
    return run_command("run " + model() + " --devices cpu --record '" + (path() / "kept").string() + "' " + options,
                       true);
  }
  /// The only recording.
  std::filesystem::path file() const {
    const std::filesystem::directory_iterator files(path() / "kept");
    REQUIRE(std::distance(begin(files), end(files)) == 1);
    return std::filesystem::directory_iterator(path() / "kept")->path();
  }
  command_result replay(const std::string& options = "") const {
    return run_command("replay '" + file().string() + "' " + options, true);
  }
};

} // namespace

TEST_CASE("a recorded run is done again without a difference", "[cli][recording]") {
  const recorded_model files;
  CHECK(files.run("--dim batch=3").status == 0);
  const command_result r = files.replay();
  CHECK_THAT(r.output, Contains("1 runs: no difference\n"));
  CHECK(r.status == 0);
  CHECK_THAT(files.replay("--json").output, Contains("\"runs\":1") || Contains("\"runs\": 1"));
  CHECK_THAT(files.replay("--print").output, Contains("run_started run") && Contains("answer_run run"));
}

TEST_CASE("a recording of another model is refused", "[cli][recording]") {
  const recorded_model files;
  CHECK(files.run("").status == 0);
  auto other = relu_model();
  other.mutable_graph()->mutable_node(0)->set_op_type("Neg");
  files.write("model.onnx", other.SerializeAsString());
  command_result r = files.replay();
  CHECK(r.status == 2);
  CHECK_THAT(r.output, Contains("it has changed since") && Contains("--model"));
  files.write("moved.onnx", relu_model().SerializeAsString());
  CHECK(files.replay("--model '" + (files.path() / "moved.onnx").string() + "'").status == 0);
  std::filesystem::remove(files.path() / "model.onnx");
  CHECK_THAT(files.replay().output, Contains("is not there"));
}

TEST_CASE("a run that went well leaves no recording that was kept in memory", "[cli][recording]") {
  const recorded_model files;
  CHECK(files.run("--record-memory 1MiB").status == 0);
  CHECK(std::filesystem::is_empty(files.path() / "kept"));
}

TEST_CASE("what is not a recording is refused", "[cli][recording]") {
  const recorded_model files;
  const command_result r = run_command("replay " + files.model(), true);
  CHECK(r.status == 1);
  CHECK_THAT(r.output, Contains("is not a recording"));
}
