// troupe plan, inspect and verify, from the command line.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"
#include "support/worker_process.hpp"

#include <nlohmann/json.hpp>

using namespace troupe::test;
using Catch::Contains;
using nlohmann::json;

namespace {

const std::string cnn = data_file("small_cnn.onnx");

json json_of(const std::string& arguments) {
  const command_result r = run_command(arguments + " --json");
  INFO(arguments << ": " << r.output);
  REQUIRE(r.status == 0);
  return json::parse(r.output);
}

/// The first node that is the model's own.
json first_node(const json& plan) {
  for (const json& c : plan["chunks"])
    for (const json& n : c["nodes"])
      if (!n.contains("inserted"))
        return n;
  return {};
}

} // namespace

TEST_CASE("a plan is printed, saved, edited and loaded again", "[cli][B1][B8]") {
  const scratch_folder folder;
  const std::string options = "plan " + cnn + " --devices 'cpu*2' --policy round-robin";
  CHECK_THAT(run_command(options).output, Contains("device 1: cpu#1") && Contains("placed: ") &&
                                              Contains("policy round-robin") && Contains("transfer: "));
  CHECK_THAT(run_command(options + " --dot").output, Catch::StartsWith("digraph plan {") && Catch::EndsWith("}\n"));
  json saved = json_of(options);
  const std::string node = first_node(saved)["name"];
  CHECK_THAT(run_command(options + " --node '" + node + "'").output, Contains("'" + node + "'") && Contains("on cpu"));
  REQUIRE(saved["chunks"].size() > 2);
  CHECK(saved["chunks"][0]["device"] != saved["chunks"][1]["device"]);

  for (json& c : saved["chunks"])
    c["device"] = "cpu#1";
  const std::string file = folder.write("plan.json", saved.dump()).string();
  const json loaded = json_of("plan " + cnn + " --devices 'cpu*2' --load " + file);
  CHECK(loaded["chunks"].size() == saved["chunks"].size());
  for (const json& c : loaded["chunks"])
    CHECK(c["device"] == "cpu#1");
  CHECK(first_node(loaded)["because"] == file + " says so");

  const json ran = json_of("run " + cnn + " --devices 'cpu*2' --load " + file);
  const json& busy = ran["busy_ms"];
  CHECK(ran["gflops_per_s"] > 0);
  CHECK(ran["utilisation"]["cpu#1"] > 0);
  CHECK(busy.value("cpu#1", 0.0) > 0);
  CHECK(busy.value("cpu", 0.0) == 0);
  const command_result refused = run_command("run " + cnn + " --devices cpu --load " + file, true);
  CHECK(refused.status == 1);
  CHECK_THAT(refused.output, Contains(file + ": chunk 0 is on the device 'cpu#1', which is not open; open are: cpu"));
  CHECK(run_command("plan " + cnn + " --load no.json").status == 1);
  const command_result unknown = run_command(options + " --node nothing", true);
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.output, Contains("no node 'nothing'"));
}

TEST_CASE("a model's statistics, memory, tensors and flows are shown", "[cli][B8]") {
  const json all = json_of("inspect " + cnn + " --devices cpu --no-fuse");
  CHECK(all["model"]["operators"]["Conv"] == all["plan"]["operators"]["Conv"]);
  CHECK(all["model"]["parameters"] > 0);
  CHECK(all["model"]["parameter_bytes"]["float32"] >= all["model"]["parameters"]);
  CHECK(all["work"]["Conv"]["flops"] > 0);
  const json& memory = all["memory"].at(0);
  CHECK(memory["device"] == "cpu");
  CHECK(memory["used_bytes"] == memory["weight_bytes"].get<int64_t>() + memory["arena_bytes"].get<int64_t>() +
                                    memory["transfer_bytes"].get<int64_t>());
  CHECK(memory["available_bytes"] > memory["used_bytes"]);
  CHECK_THAT(run_command("inspect " + cnn + " --devices cpu").output,
             Contains("as loaded:") && Contains("GFLOP a run") && Contains("memory  cpu: "));

  const std::string placed = " --devices 'null*2' --policy round-robin --no-fuse";
  const json first = first_node(json_of("plan " + cnn + placed));
  const std::string inner = first["outputs"][0]["name"];
  const json tensors = json_of("inspect " + cnn + " --devices cpu --tensor '" + inner + "' --elements 3");
  const json& t = tensors["tensors"][inner];
  CHECK(t["dims"] == first["outputs"][0]["dims"]);
  CHECK(t["min"] < t["max"]);
  CHECK(t["nan"] == 0);
  CHECK(t["first"].size() == 3);

  const json flow = json_of("inspect " + cnn + placed + " --flow '" + inner + "'");
  const json& f = flow["flows"].at(0);
  CHECK(f["made_by"]["node"] == first["name"]);
  CHECK(f["made_by"]["device"] == "null");
  CHECK(f["moves"].at(0)["from"] == "null");
  CHECK(f["moves"].at(0)["to"] == "null#1");
  CHECK(f["read_by"].at(0)["device"] == "null#1");
  const command_result unknown = run_command("inspect " + cnn + " --tensor nothing", true);
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.output, Contains("the model has no tensor 'nothing'"));
}

TEST_CASE("verify finds the same answer everywhere, and a device that is wrong", "[cli][A13]") {
  const json same = json_of("verify " + cnn + " --devices 'cpu*2'");
  REQUIRE(same.size() >= 4);
  size_t side_by_side = 0;
  for (const json& trial : same) {
    CHECK(trial["outcome"] == "same");
    side_by_side += trial["nodes"].size() == 2;
  }
  CHECK(side_by_side > 0);
  const command_result wrong = run_command("verify " + cnn + " --devices cpu,null", true);
  CHECK(wrong.status == 1);
  CHECK_THAT(wrong.output, Contains("DIFFERS") && Contains("null alone") && Contains("element "));
  CHECK_THAT(wrong.output, !Contains("all but equal"));
  onnx::ModelProto best = relu_model();
  best.mutable_graph()->mutable_node(0)->set_op_type("ArgMax");
  best.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::INT64);
  best.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  const scratch_folder folder;
  const std::string argmax = folder.write("m.onnx", best.SerializeAsString()).string();
  const command_result decided =
      run_command("verify " + argmax + " --devices cpu,null --dim batch=9 --dim features=4", true);
  CHECK(decided.status == 1);
  CHECK_THAT(decided.output, Contains("note: this model has ArgMax: "));
  const command_result refused = run_command("verify " + cnn + " --rtol -1", true);
  CHECK(refused.status == 2);
}

TEST_CASE("verify allows float16 what its rounding costs", "[cli]") {
  const std::string half = "verify " + cnn + " --devices cpu --precision fp16";
  CHECK(run_command(half).status == 0);
  CHECK(run_command(half + " --rtol 1e-6 --atol 1e-6").status == 1);
}

TEST_CASE("verify's first answers are this machine's CPU's, whatever hosts, policy and limits there are",
          "[cli][remote]") {
  const scratch_folder weights;
  const worker_process far({"--devices", "cpu", "--weights", weights.path().string()});
  const json trials =
      json_of(fmt::format("verify {} --hosts far=127.0.0.1:{} --insecure --devices cpu,far/cpu --policy round-robin "
                          "--memory far/cpu=1GiB",
                          cnn, far.port()));
  for (const json& trial : trials)
    CHECK(trial["outcome"] == "same");
  for (const size_t first : {0, 1})
    CHECK(trials.at(first)["nodes"].size() == 1);
  CHECK(trials.at(2)["placement"] == "far/cpu alone");
  CHECK(trials.at(2)["nodes"].size() == 1);
  CHECK(trials.back()["pieces"].size() == 2); // work-stealing
}

TEST_CASE("verify compares GPUs with the CPU", "[cli][vulkan][A13]") {
  for (const json& trial : json_of("verify " + cnn + " --devices vulkan:0,cpu"))
    CHECK(trial["outcome"] == "same");
}
