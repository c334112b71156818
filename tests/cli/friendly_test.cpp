// Output for users who mistype, wait, interrupt, or have a model with hostile names.
#include "base/text_file.hpp"
#include "cli/progress_text.hpp"
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"
#include "support/places.hpp"

#include <nlohmann/json.hpp>

using namespace troupe::test;
using Catch::Contains;

namespace {

const std::string cnn = data_file("small_cnn.onnx");

/// Writes a tensor file of ONNX's test cases.
void write_pb(const scratch_folder& folder, const std::string& name, const onnx::TensorProto& t) {
  std::filesystem::create_directories((folder.path() / name).parent_path());
  folder.write(name, t.SerializeAsString());
}

/// A Relu whose names hold an escape sequence, a forged line and bytes that are not UTF-8.
onnx::ModelProto hostile_model() {
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  auto& g = *m.mutable_graph();
  g.set_name("g");
  set_tensor_type(*g.add_input(), "x\x1b[31m", {"b\x07"});
  set_tensor_type(*g.add_output(), "y\nforged\xff", {"b\x07"});
  add_node(g, "Relu", {"x\x1b[31m"}, {"y\nforged\xff"}).set_name("node\x1b[2J");
  return m;
}

bool has_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < 0x20 && c != '\n') || c == 0x7f; });
}

} // namespace

TEST_CASE("a mistyped subcommand is named, with the nearest one", "[cli]") {
  const command_result r = run_command("rn model.onnx", true);
  CHECK(r.status == 2);
  CHECK_THAT(r.output, Contains("no subcommand 'rn'") && Contains("did you mean 'run'?"));
  CHECK_THAT(run_command("frobnicate", true).output, Contains("they are: run, ") && !Contains("did you mean"));
  CHECK(run_command("--version").status == 0);
  CHECK_THAT(run_command("", true).output, Contains("subcommand is required"));
}

TEST_CASE("a dim that the model does not have is refused with those it has", "[cli][D3]") {
  const scratch_folder folder;
  const std::string model = folder.write("m.onnx", relu_model().SerializeAsString()).string();
  const command_result r = run_command("run " + model + " --devices cpu --dim nonsense=3", true);
  CHECK(r.status == 2);
  CHECK_THAT(r.output, Contains("no dim 'nonsense'") && Contains("batch, features"));
  CHECK(run_command("run " + model + " --devices cpu --dim batch=3 --dim features=2").status == 0);
}

TEST_CASE("sizes that are asked for win over a test case's inputs, and it is said", "[cli]") {
  const scratch_folder folder;
  folder.write("model.onnx", relu_model().SerializeAsString());
  write_pb(folder, "test_data_set_0/input_0.pb", raw_floats("x", {1, 4}, {1, -2, 3, -4}));
  const std::string bench = "bench " + folder.path().string() + " --devices cpu --runs 2 --warmup-seconds 0 ";
  CHECK_THAT(run_command(bench, true).output, !Contains("made up"));
  CHECK_THAT(run_command(bench + "--dim batch=1", true).output, !Contains("made up"));
  const command_result other = run_command(bench + "--dim batch=32", true);
  CHECK(other.status == 0);
  CHECK_THAT(other.output,
             Contains("its 'batch' is 1, and --dim says 32; inputs are made up") && Contains("over 2 runs"));
}

TEST_CASE("names from a file reach neither terminal nor JSON raw", "[cli]") {
  const scratch_folder folder;
  folder.write("model.onnx", hostile_model().SerializeAsString());
  const std::string model = folder.path().string();
  write_pb(folder, "test_data_set_0/input_0.pb", raw_floats("x", {2}, {1, -2}));
  write_pb(folder, "test_data_set_0/output_0.pb", raw_floats("y", {2}, {7, 7}));
  for (const std::string command :
       {"run", "plan", "plan --dot", "inspect", "verify", "test", "bench --runs 2", "run --dim none=1",
        "plan --node none", "inspect --tensor none", "profile --runs 1"}) {
    INFO(command);
    const command_result r = run_command(command + " " + model + " --devices cpu", true);
    CHECK_FALSE(has_control_characters(r.output));
    CHECK(r.output.find('\xff') == std::string::npos);
    CHECK_THAT(r.output, !Contains("\nforged"));
  }
  for (const std::string command : {"run", "plan", "inspect", "verify", "test", "bench --runs 2", "profile --runs 1"}) {
    INFO(command);
    const command_result r = run_command(command + " --json " + model + " --devices cpu");
    CHECK_NOTHROW(nlohmann::json::parse(r.output));
    CHECK_FALSE(has_control_characters(r.output));
  }
}

TEST_CASE("output that cannot be written is an error, but for a reader that has gone", "[cli]") {
  const scratch_folder folder;
  const std::string errors = (folder.path() / "errors").string();
  for (const std::string& arguments :
       std::vector<std::string>{"--version", "--help", "plan --json --devices cpu " + cnn}) {
    INFO(arguments);
    const std::string line = "'" + command_path() + "' " + arguments;
    const command_result full = run_shell(line + " 2>&1 >/dev/full");
    CHECK(full.status == 1);
    CHECK_THAT(full.output, Contains("troupe: the output cannot be written"));
    CHECK(run_shell(line + " 2>&1 >&-").status == 1);
    run_shell("{ trap '' PIPE; sleep 0.1; " + line + " 2>" + errors + "; } | true");
    CHECK(troupe::read_text(errors, 1 << 20, errors).empty());
  }
}

TEST_CASE("a number is the one that was typed", "[cli]") {
  const std::string run = "run " + cnn + " --devices cpu ";
  for (const char* wrong : {"--seed -1", "--seed 99999999999999999999", "--depth 99999999999999999999"}) {
    const command_result r = run_command(run + wrong, true);
    CHECK(r.status == 2);
    CHECK_THAT(r.output, Contains(std::string(wrong).substr(8)));
  }
  CHECK_THAT(run_command(run + "--timeout nan", true).output, Contains("'nan' is not finite"));
  CHECK(run_command(run + "--seed 18446744073709551615").status == 0);
}

TEST_CASE("a plan's head has sizes for people", "[cli][B8]") {
  CHECK_THAT(run_command("plan " + cnn + " --devices cpu --memory cpu=3GiB").output,
             Contains("device 0: cpu (3.0 GiB), ") && Contains(" KiB"));
}

TEST_CASE("progress says how far weights have come that go to other hosts", "[cli][remote]") {
  using troupe::cli::load_text;
  CHECK(load_text({}, 1).empty());
  std::vector<troupe::host_summary> hosts(3);
  hosts[0].name = "one";
  hosts[1].name = "two";
  hosts[2].name = "idle";
  CHECK(load_text(hosts, 1).empty());
  hosts[0].load_bytes = 400'000'000;
  hosts[0].loaded_bytes = 100'000'000;
  CHECK(load_text(hosts, 2) == "weights to one  100 of 400 MB, 6 s left");
  hosts[1].load_bytes = 100'000'000;
  hosts[1].loaded_bytes = 25'000'000;
  CHECK(load_text(hosts, 2) == "weights to one, two  125 of 500 MB, 6 s left");
}

TEST_CASE("progress says how much is done and how long the rest takes", "[cli]") {
  using troupe::cli::progress_text;
  CHECK(progress_text("bench", 5, 20, "runs", 2) == "bench  5 of 20 runs, 6 s left");
  CHECK(progress_text("bench", 0, 20, "runs", 2) == "bench  0 of 20 runs");
  CHECK(progress_text("bench", 20, 20, "runs", 2) == "bench  20 of 20 runs");
  CHECK(progress_text("test", 1, 100, "cases", 7) == "test  1 of 100 cases, 11 min 33 s left");
  CHECK(progress_text("loading m.onnx", 0, 0, "", 3.2) == "loading m.onnx … 3 s");
}

TEST_CASE("progress is for terminals only", "[cli]") {
  const std::string bench = "bench " + cnn + " --devices cpu --runs 100000000";
  const std::string on_terminal =
      "script -qec \"timeout --foreground -s INT 3 '" + command_path() + "' " + bench + "\" /dev/null < /dev/null";
  CHECK_THAT(run_shell(on_terminal).output, Contains("of 100000000 runs, ") && Contains(" left"));
  CHECK_THAT(run_shell("timeout --foreground -s INT 3 '" + command_path() + "' " + bench + " 2>&1").output,
             !Contains(" left"));
}

TEST_CASE("Ctrl-C prints what has been measured so far", "[cli]") {
  const std::string troupe = "timeout --foreground --preserve-status -s INT 3 '" + command_path() + "' ";
  const command_result bench = run_shell(troupe + "bench " + cnn + " --devices cpu --runs 100000000 2>&1");
  CHECK(bench.status == 130);
  CHECK_THAT(bench.output, Contains("median ") && Contains("interrupted"));
  const command_result json = run_shell(troupe + "bench " + cnn + " --devices cpu --runs 100000000 --json 2>/dev/null");
  CHECK(nlohmann::json::parse(json.output)["runs"] > 0);
}
