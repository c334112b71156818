// troupe profile --tune, from the command line, and sessions that use its results.
#include "actors/engine_access.hpp"
#include "loader/models.hpp"
#include "measure/tuning.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"
#include "support/small_models.hpp"
#include "trace/run_trace.hpp"

#include <nlohmann/json.hpp>

#include <set>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;
using nlohmann::json;

namespace {

/// One product of few rows, which three kernels can run, and a convolution.
graph some_model() {
  graph_builder b;
  const value_id x = b.input("x", {1, 8, 6, 6});
  const value_id y = b.op("Conv", {x, b.constant("w", random_tensor({16, 8, 3, 3}, 1))});
  const value_id rows = b.op("Flatten", {y});
  b.output(b.op("MatMul", {rows, b.constant("m", random_tensor({256, 40}, 2))}));
  return b.g;
}

/// Returns the outputs of a run of the model on GPU 0 by a file of profiles, and the kernels of its nodes.
struct traced {
  std::vector<tunable_call> calls;
  std::set<std::string> kernels;
  tensor output;
  profile_key device;
};

traced run_by(const std::filesystem::path& file) {
  engine e({.devices = {"vulkan:0"}, .profile_file = file.string()});
  CHECK(e.profile_problem().empty());
  const session s = e.load(some_model());
  const named_tensors inputs{{"x", random_tensor({1, 8, 6, 6}, 3)}};
  const run_result r = s.run(inputs, {.trace = true});
  traced found{.output = r.outputs.begin()->second};
  for (const chunk_trace& c : r.trace->chunks)
    for (const device_timing& t : c.timings)
      if (t.kind == device_timing::work::node)
        found.kernels.insert(t.kernel);
  const bound_plan_ptr bound = bound_plan_of(s, inputs);
  for (device_index d = 0; d < bound->source->devices.size(); ++d)
    if (const device_info& info = bound->source->devices[d]; info.name == "vulkan:0") {
      found.calls = tunable_calls(*bound, d, kernels_of(e, "vulkan:0")->revision());
      found.device = key_of(info);
    }
  return found;
}

/// The largest difference, as a part of the largest element.
double distance(const tensor& a, const tensor& b) {
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(a.values<float>()[i] - b.values<float>()[i]);
    worst = error <= worst ? worst : error; // NaN counts
    largest = std::max<double>(largest, std::abs(b.values<float>()[i]));
  }
  return worst / largest;
}

} // namespace

TEST_CASE("the next session runs the kernels that a file chooses, and gives the same", "[cli][vulkan][C11]") {
  const scratch_folder folder;
  const auto file = folder.path() / "profiles.json";
  const traced usual = run_by(file);
  REQUIRE(usual.calls.size() >= 2);
  CHECK(kernels_of(engine({.devices = {"cpu"}}), "cpu") == nullptr);
  size_t ways = 0;
  for (const tunable_call& call : usual.calls)
    for (size_t w = 1; w < call.ways.size(); ++w, ++ways) {
      INFO(call.what << ": " << call.ways[w].name);
      std::filesystem::remove(file);
      measured_profile chosen{usual.device, {}, {}, {{call.key, call.ways[w].kernel, call.ways[w].name, 1e-6, 2e-6}}};
      store_profiles(file, {chosen});
      const traced other = run_by(file);
      const std::string kernel = call.ways[w].name.substr(0, call.ways[w].name.find(' '));
      CHECK(other.kernels.contains(kernel));
      CHECK(distance(other.output, usual.output) < 1e-5);
      chosen.device.description += "?"; // another GPU's
      std::filesystem::remove(file);
      store_profiles(file, {chosen});
      CHECK(run_by(file).kernels == usual.kernels);
    }
  CHECK(ways >= 4);
}

TEST_CASE("a model's kernels are tuned, and the choices kept", "[cli][vulkan][C11][slow]") {
  const scratch_folder folder;
  const auto file = folder.path() / "profiles.json";
  const std::string command = "profile " + data_file("small_cnn.onnx") +
                              " --devices vulkan:0 --tune --budget 60 --runs 1 --file " + file.string();
  const command_result tuned = run_command(command + " --json");
  INFO(tuned.output);
  REQUIRE(tuned.status == 0);
  const json device = json::parse(tuned.output).at("tuned").at(0);
  CHECK(device.at("device") == "vulkan:0");
  CHECK(device.at("rounds").get<int>() >= 1);
  CHECK(device.at("wrong").empty());
  const json& calls = device.at("calls");
  REQUIRE(calls.size() >= 3);
  size_t measured = 0;
  double chosen_ms = 0;
  for (const json& call : calls) {
    CHECK(call.at("ways").get<int>() >= 2);
    CHECK(call.at("chosen_us").get<double>() <= call.at("usual_us").get<double>());
    CHECK(call.at("is_usual").get<bool>() == (call.at("chosen") == call.at("usual")));
    measured += call.at("usual_us").get<double>() > 0 ? 1 : 0;
    chosen_ms += call.at("chosen_us").get<double>() * call.at("nodes").get<double>() * 1e-3;
  }
  CHECK(device.at("chosen_ms").get<double>() == Approx(chosen_ms));
  const loaded_profiles kept = load_profiles(file);
  REQUIRE(kept.devices.size() == 1);
  CHECK(kept.devices[0].kernels.size() == measured);
  CHECK_THAT(run_command(command).output, Contains("usual kernel") && Contains("distinct calls with several kernels"));
}

TEST_CASE("models that cannot be tuned are named", "[cli][C11]") {
  CHECK_THAT(run_command("profile --tune", true).output, Contains("needs a model"));
  CHECK_THAT(run_command("profile --calibrate --tune", true).output, Contains("calibrate first"));
  CHECK_THAT(run_command("profile " + data_file("small_cnn.onnx") + " --devices cpu --tune", true).output,
             Contains("only GPUs have kernels to choose from"));
}
