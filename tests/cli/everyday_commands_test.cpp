// Commands that users type in the first hour: several inputs, sizes by any name, outputs of every type, devices that
// cannot help.
#include "support/catch.hpp"

#include "loader/models.hpp"
#include "support/command.hpp"
#include "support/places.hpp"
#include "troupe/tensor_file.hpp"

#include <nlohmann/json.hpp>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

/// Relu of x and of z [past_sequence_length + 1], and two texts.
onnx::ModelProto mixed_model() {
  auto m = relu_model();
  m.set_producer_name("exporter");
  m.set_producer_version("1.2");
  auto* about = m.add_metadata_props();
  about->set_key("names");
  about->set_value("{0: 'cat'}");
  auto& g = *m.mutable_graph();
  set_tensor_type(*g.add_input(), "z", {"past_sequence_length + 1"});
  set_tensor_type(*g.add_output(), "r", {"past_sequence_length + 1"});
  add_node(g, "Relu", {"z"}, {"r"});
  onnx::TensorProto texts;
  texts.set_name("words");
  texts.set_data_type(onnx::TensorProto::STRING);
  texts.add_dims(2);
  for (const char* text : {"cat", "dog"})
    texts.add_string_data(text);
  *g.add_initializer() = texts;
  set_tensor_type(*g.add_output(), "t", {"two"});
  g.mutable_output(2)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::STRING);
  add_node(g, "Identity", {"words"}, {"t"});
  return m;
}

struct model_folder : scratch_folder {
  std::string model = "'" + write("model.onnx", mixed_model().SerializeAsString()).string() + "'";
};

} // namespace

TEST_CASE("an option that takes NAME=VALUE takes several in a row", "[cli]") {
  const model_folder f;
  const std::string x = (f.path() / "x.npy").string(), z = (f.path() / "z.npy").string();
  write_npy(x, tensor::of<float>({1, 2}, std::vector<float>{1, 2}));
  write_npy(z, tensor::of<float>({3}, std::vector<float>{1, 2, 3}));
  const std::string both = "--input x='" + x + "' z='" + z + "' ";
  for (const std::string& line :
       {"run --devices cpu " + both + f.model, "run " + f.model + " " + both + "--devices cpu"}) {
    const command_result r = run_command(line + " --json", true);
    INFO(r.output);
    REQUIRE(r.status == 0);
    const auto outputs = nlohmann::json::parse(r.output)["outputs"];
    CHECK(outputs["y"]["max"] == 2);
    CHECK(outputs["r"]["max"] == 3);
  }
}

TEST_CASE("sizes are stated by the names that the file gives dims, and only by those", "[cli]") {
  const model_folder f;
  const command_result r =
      run_command("run " + f.model + " --devices cpu --dim 'past_sequence_length + 1=5' batch=3 --json", true);
  INFO(r.output);
  REQUIRE(r.status == 0);
  CHECK(nlohmann::json::parse(r.output)["outputs"]["r"]["dims"] == std::vector<int>{5});
  CHECK(nlohmann::json::parse(r.output)["outputs"]["y"]["dims"] == std::vector<int>{3, 1});
  CHECK_THAT(run_command("inspect " + f.model + " --devices cpu").output, Contains("[past_sequence_length + 1]"));

  const std::string decoder = "run " + data_file("decoder.onnx") + " --devices cpu --bind present=past --dim past=2 ";
  const command_result unknown = run_command(decoder + "--dim total=3 --grow totl=1", true);
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.output, Contains("--grow 'totl=1'") && Contains("no dim 'totl'") && Contains("total"));
}

TEST_CASE("outputs that are texts are written and shown beside all others", "[cli]") {
  const model_folder f;
  const command_result r =
      run_command("run " + f.model + " --devices cpu --json --output '" + f.path().string() + "/out'", true);
  INFO(r.output);
  REQUIRE(r.status == 0);
  CHECK(nlohmann::json::parse(r.output)["outputs"]["t"]["first"] == std::vector<std::string>{"cat", "dog"});
  CHECK(read_pb(f.path() / "out" / "t.pb").value.values<std::string>()[1] == "dog");
  CHECK(read_npy(f.path() / "out" / "y.npy").dims() == shape{1, 1});
  CHECK_THAT(run_command("run " + f.model + " --devices cpu").output, Contains("[\"cat\", \"dog\"]"));
}

TEST_CASE("inspect prints the file's own metadata, and with plan the part of it that is ignored", "[cli]") {
  const model_folder f;
  auto m = mixed_model();
  m.add_training_info();
  f.write("model.onnx", m.SerializeAsString());
  CHECK_THAT(run_command("inspect " + f.model + " --devices cpu").output,
             Contains("IR version 8, opset 17, made by exporter 1.2") && Contains("names = {0: 'cat'}") &&
                 Contains("ignored what the file says of training"));
  const auto file = nlohmann::json::parse(run_command("inspect " + f.model + " --devices cpu --json").output)["file"];
  CHECK(file["producer"] == "exporter");
  CHECK(file["metadata"]["names"] == "{0: 'cat'}");
  CHECK_THAT(run_command("plan " + f.model + " --devices cpu").output,
             Contains("ignored: what the file says of training"));
  CHECK(nlohmann::json::accept(run_command("plan " + f.model + " --devices cpu --json").output));
}

TEST_CASE("a device that was asked for and gets no node is a warning with the reason", "[cli]") {
  const scratch_folder f;
  auto m = relu_model();
  m.mutable_graph()->mutable_node(0)->set_op_type("NonZero");
  auto* const places = m.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
  places->set_elem_type(onnx::TensorProto::INT64);
  places->clear_shape();
  const std::string run = "run '" + f.write("m.onnx", m.SerializeAsString()).string() + "' --devices ";
  const command_result on_gpu = run_command(run + "vulkan:0", true);
  INFO(on_gpu.output);
  CHECK(on_gpu.status == 0);
  CHECK_THAT(on_gpu.output, Contains("warning: device 'vulkan:0' runs no node") && Contains("cpu runs all") &&
                                Contains("NonZero has outputs whose shape depends on data"));
  CHECK_THAT(run_command(run + "cpu,null", true).output,
             Contains("warning: device 'null' runs no node") && Contains("policy single puts all on cpu"));
  CHECK_THAT(run_command(run + "cpu", true).output, !Contains("warning"));
  CHECK_THAT(run_command("run " + data_file("small_cnn.onnx") + " --devices vulkan:0,cpu", true).output,
             !Contains("warning"));
  CHECK_THAT(run_command("verify" + run.substr(3) + "vulkan:0", true).output,
             Contains("warning: device 'vulkan:0' runs no node") &&
                 Contains("NonZero has outputs whose shape depends on data"));
}

TEST_CASE("an output's declared shape that is not so is a warning, its type an error", "[cli]") {
  const scratch_folder f;
  auto m = relu_model();
  const auto type_of = [](onnx::ValueInfoProto* info) { return info->mutable_type()->mutable_tensor_type(); };
  type_of(m.mutable_graph()->mutable_input(0))->mutable_shape()->mutable_dim(1)->set_dim_value(3);
  auto* declared = type_of(m.mutable_graph()->mutable_output(0));
  declared->mutable_shape()->mutable_dim(1)->set_dim_value(5);
  const auto run = [&] {
    return run_command("run '" + f.write("m.onnx", m.SerializeAsString()).string() + "' --devices cpu --dim batch=2",
                       true);
  };
  CHECK(run().status == 0);
  CHECK_THAT(run().output, Contains("warning: output 'y' has shape [batch, 3], though the model declares [batch, 5]") &&
                               Contains("float32 [2, 3]"));
  declared->mutable_shape()->mutable_dim(1)->set_dim_value(3);
  CHECK_THAT(run().output, !Contains("warning"));
  declared->clear_shape();
  CHECK_THAT(run().output, !Contains("warning"));
  declared->set_elem_type(onnx::TensorProto::INT64);
  CHECK(run().status == 1);
  CHECK_THAT(run().output, Contains("output 'y' is declared as int64, but the model computes float32"));
  declared->clear_elem_type();
  CHECK(run().status == 0);
}

TEST_CASE("a GPU that does not open is left out, and devices says why", "[cli][vulkan]") {
  const std::filesystem::path driver = "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json";
  if (!std::filesystem::exists(driver)) {
    WARN("skipped: Mesa's driver for AMD's GPUs is not installed");
    return;
  }
  const model_folder f;
  f.write("model.onnx", mixed_model().SerializeAsString());
  // Hardware that is not there: the driver opens it, and makes no semaphores or has no memory.
  const std::string absent =
      "VK_DRIVER_FILES=" + driver.string() + " RADV_FORCE_FAMILY=NAVI21 '" + command_path() + "' ";
  const command_result listed = run_shell(absent + "devices");
  INFO(listed.output);
  CHECK(listed.status == 0);
  if (listed.output.starts_with("vulkan:0 ")) {
    WARN("skipped: this driver opens hardware that is not there");
    return;
  }
  CHECK_THAT(listed.output,
             Catch::StartsWith("cpu ") && Contains("no GPU: vulkan:0 (") && Contains(") does not open: "));
  CHECK(run_shell(absent + "run " + f.model + " --quiet").status == 0);
  CHECK_THAT(run_shell(absent + "devices --devices vulkan:0 2>&1").output, Contains("troupe: "));
}

TEST_CASE("plan writes a copy of a model that says what runs where, and follows one", "[cli][annotations]") {
  const model_folder f;
  f.write("model.onnx", mixed_model().SerializeAsString());
  const std::string copy = (f.path() / "annotated.onnx").string();
  const std::string two = " --devices 'cpu*2'";
  const command_result planned = run_command("plan " + f.model + two + " --policy round-robin --annotate " + copy);
  INFO(planned.output);
  REQUIRE(planned.status == 0);
  CHECK_THAT(run_command("plan " + copy + two).output,
             Contains("placed as the file's configuration 'troupe' says") && Contains("on cpu#1"));
  CHECK_THAT(run_command("plan " + copy + " --devices cpu").output,
             Contains("is for 2 devices, and 1 can be used: it is not followed"));
  CHECK_THAT(run_command("plan " + f.model + two + " --annotate " + f.model, true).output,
             Contains("to a file of its own"));
}
