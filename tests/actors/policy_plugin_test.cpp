// A policy from a shared library, as a program and the command use it.
#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"
#include "support/places.hpp"
#include "support/small_models.hpp"
#include "support/thrown.hpp"

#include <nlohmann/json.hpp>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

const std::string plugins = test_plugins() + "/";
const auto six = tensor::of<float>({2, 3}, std::vector<float>{1, -2, 3, -4, 5, -6});

} // namespace

TEST_CASE("a session runs nodes where a policy plug-in places them", "[actors][schedules][C6]") {
  engine e({.devices = {"cpu*2"}});
  const session plain = e.load(chain(4), {.fuse = false});
  const session s = e.load(chain(4), {.policy_plugin = plugins + "last_device.so", .fuse = false});
  const named_tensors inputs{{"x", six}};
  const run_result expected = plain.run(inputs), result = s.run(inputs);
  const auto& [name, want] = *expected.outputs.begin();
  const auto got = result.outputs.at(name).values<float>(), wanted = want.values<float>();
  CHECK(std::equal(got.begin(), got.end(), wanted.begin(), wanted.end()));
  const auto made = nlohmann::json::parse(s.plan(inputs, plan_format::json));
  CHECK(made["policy"] == "last_device");
  CHECK(made["devices"][0]["nodes"] == 0);
  CHECK(made["devices"][1]["nodes"] == 4);
  CHECK(made["key"] != nlohmann::json::parse(plain.plan(inputs, plan_format::json))["key"]);
}

TEST_CASE("strategies spread a model by a policy plug-in", "[actors][schedules][C10]") {
  engine e({.devices = {"cpu", "slow:50"}});
  const named_tensors inputs{{"x", six}};
  const session_options mine{
      .policy_plugin = plugins + "last_device.so", .strategy = strategy::model_parallel, .fuse = false};
  const session s = e.load(chain(4), mine);
  s.run(inputs);
  CHECK(nlohmann::json::parse(s.plan(inputs, plan_format::json))["policy"] == "last_device");
  session_options any = mine;
  any.strategy = strategy::automatic;
  size_t by_plugin = 0;
  for (const strategy_choice& c : e.load(chain(4), any).compare(inputs)) {
    CHECK((c.strategy != strategy::model_parallel || c.policy == placement_policy::plug_in));
    by_plugin += c.policy == placement_policy::plug_in;
  }
  CHECK(by_plugin == 1);
}

TEST_CASE("a session refuses a policy plug-in that is wrong", "[actors][schedules][E5]") {
  engine e({.devices = {"cpu*2"}});
  const auto load = [&](const std::string& name) {
    e.load(chain(2), {.policy_plugin = plugins + name}).run({{"x", six}});
  };
  CHECK_THROWS_WITH(load("none.so"), Contains("is not a file"));
  CHECK_THROWS_WITH(load("other_version.so"), Contains("version 0"));
  CHECK_THROWS_WITH(load("throws.so"), Contains("the policy plug-in 'throws'") && Contains("out of ideas"));
  CHECK_THROWS_WITH(load("no_such_device.so"), Contains("there are only 2"));
  CHECK_THROWS_AS(e.load(chain(2), {.policy = placement_policy::plug_in}).run({{"x", six}}), error);
}

TEST_CASE("the policy of --policy-plugin is the policy", "[cli][schedules][C6]") {
  const std::string plan = "plan " + data_file("small_cnn.onnx") + " --devices 'cpu*2' --policy-plugin " + plugins;
  const command_result alone = run_command(plan + "last_device.so");
  CHECK(alone.status == 0);
  CHECK_THAT(alone.output, Contains("policy last_device"));
  CHECK(run_command(plan + "last_device.so --policy last_device").output == alone.output);
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const command_result r = run_command(plan + arguments, true);
    CHECK(r.status == 2); // a wrong call
    CHECK_THAT(r.output, Contains(why));
  };
  refused("last_device.so --policy heft",
          "--policy heft is not what --policy-plugin gives, the policy plug-in 'last_device'");
  refused("other_entry.so", "exports no function 'troupe_policy'");
  refused("forgetful.so", "the policy plug-in 'forgetful'");
}
