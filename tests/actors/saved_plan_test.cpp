// Sessions that follow a saved plan.
#include "actors/engine_access.hpp"
#include "loader/models.hpp"
#include "plan/place/policies.hpp"
#include "plan/show/print.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/direct_evaluation.hpp"
#include "support/fault_device.hpp"
#include "support/reference_device.hpp"
#include "support/small_models.hpp"

#include <nlohmann/json.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

const tensor six = floats({2, 3}, {-1, 2, 3, 4, 5, 6});

/// Device names by chunk.
std::vector<std::string> devices_of(const plan& p) {
  std::vector<std::string> names;
  for (const chunk& c : p.chunks)
    names.push_back(p.devices[c.device].name);
  return names;
}

} // namespace

TEST_CASE("a session follows a saved plan of any policy and gives the same answer", "[actors][B1]") {
  const scratch_folder folder;
  const graph g = fan_out(3, 4);
  const named_tensors inputs{{"x", floats({4}, {-1, 0, 1, 2})}}, want = evaluate_directly(g, inputs);
  for (const policy_row& row : policies()) {
    INFO(row.name);
    engine e({.devices = {"cpu*3"}});
    const auto original = plan_of(e.load(g, {.policy = row.policy, .fuse = false}), inputs);
    const auto file = folder.write("plan.json", to_json(*original));
    const session s = e.load(g, {.plan_file = file.string(), .fuse = false});
    CHECK(devices_of(*plan_of(s, inputs)) == devices_of(*original));
    const named_tensors outputs = s.run(inputs).outputs;
    for (const auto& [name, expected] : want)
      for (int64_t i = 0; i < expected.size(); ++i)
        CHECK(outputs.at(name).data<float>()[i] == Approx(expected.data<float>()[i]).epsilon(1e-4).margin(1e-5));
  }
}

TEST_CASE("a plan that does not fit is refused when the model is loaded", "[actors][B1]") {
  const scratch_folder folder;
  engine e({.devices = {"null"}});
  const auto file = folder.write("plan.json", to_json(*plan_of(e.load(chain(3)), {{"x", six}})));
  CHECK(error_of([&] { e.load(chain(5), {.plan_file = file.string()}); }).starts_with("invalid_plan: "));
  CHECK(error_of([&] {
          e.load(chain(3), {.plan_file = file.string(), .fuse = false});
        }).find("with other options (fusion, precision, outputs)") != std::string::npos);
  CHECK(error_of([&] { e.load(chain(3), {.plan_file = "none.json"}); }).starts_with("io: "));
  CHECK(e.load(chain(3), {.plan_file = file.string()}).run({{"x", six}}).outputs.size() == 1);
}

TEST_CASE("when a device of a saved plan is lost, the policy decides", "[actors][B1][C11]") {
  const scratch_folder folder;
  engine_hooks hooks;
  hooks.custom_devices.push_back([] { return std::make_unique<reference_device>("good"); });
  hooks.custom_devices.push_back([] {
    return std::make_unique<fault_device>(std::make_unique<reference_device>("bad"), fault_script{.die_at = 0});
  });
  engine e = make_engine({.devices = {}}, hooks);
  const session_options round_robin{.policy = placement_policy::round_robin, .fuse = false};
  const auto file = folder.write("plan.json", to_json(*plan_of(e.load(chain(4), round_robin), {{"x", six}})));
  const session s = e.load(chain(4), {.plan_file = file.string(), .fuse = false});
  const run_result r = s.run({{"x", six}});
  CHECK(r.stats.lost_devices == std::vector<std::string>{"bad"});
  CHECK(devices_of(*plan_of(s, {{"x", six}})) == std::vector<std::string>{"good"});
}

TEST_CASE("control flow is a chunk of its own in a saved plan", "[actors][control][B1]") {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {2, 3});
  const value_id result = add_loop(
      b, "loop", n, no_value, b.op("Sigmoid", {x}, {}, "start"),
      [](body_builder& body, value_id, value_id go, value_id v) { return std::pair(go, body.op("Neg", {v})); });
  b.output(b.op("Abs", {result}, {}, "end"));
  const named_tensors inputs{{"n", tensor::scalar(int64_t{3})}, {"x", six}};
  engine e({.devices = {"cpu*2"}});
  const session original = e.load(b.g, {.policy = placement_policy::round_robin, .fuse = false});
  nlohmann::json saved = nlohmann::json::parse(to_json(*plan_of(original, inputs)));
  REQUIRE(saved["bodies"].size() == 1);
  const scratch_folder folder;
  const auto file = folder.write("plan.json", saved.dump());
  const session s = e.load(b.g, {.plan_file = file.string(), .fuse = false});
  CHECK(devices_of(*plan_of(s, inputs)) == devices_of(*plan_of(original, inputs)));
  CHECK(s.run(inputs).outputs.at("end").values<float>()[1] ==
        Approx(original.run(inputs).outputs.at("end").values<float>()[1]));

  auto& chunks = saved["chunks"];
  chunks[0]["nodes"].push_back(chunks[1]["nodes"][0]);
  chunks.erase(1);
  folder.write("plan.json", saved.dump());
  CHECK(error_of([&] {
          e.load(b.g, {.plan_file = file.string(), .fuse = false});
        }).find("Loop 'loop' and other nodes; control flow is a chunk of its own") != std::string::npos);
}
