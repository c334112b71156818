// Policies from shared libraries: those that are right are used like built-in ones, all others are refused by name.
#include "plan/place/policy_library.hpp"

#include "plan/estimate/predict.hpp"
#include "plan/graphs.hpp"
#include "plan/place/placement.hpp"
#include "plan/plan_key.hpp"
#include "support/catch.hpp"
#include "support/places.hpp"
#include "troupe/own_policy.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
namespace fs = std::filesystem;
using placed = std::vector<device_index>;

namespace {

fs::path plugin(const std::string& name) {
  return fs::path(test::test_plugins()) / (name + ".so");
}

plan_options options_with(const std::string& name) {
  return {.policy = placement_policy::plug_in, .plugin = policy_library::open(plugin(name))};
}

/// An operator that computes: 1,000 operations an element of its output.
op_cost heavy_cost(const attributes&, const call_shapes& call) {
  return {.flops = 1000 * static_cast<double>(volume(call.outputs[0]))};
}
const op_def& heavy_op = gpu_op(
    {.domain = "test", .name = "heavy", .since = 1, .inputs = {0, 255}, .infer = infer_nothing, .cost = heavy_cost},
    any_launch);

/// A GPU's node, and one that only the last device can run.
std::shared_ptr<const graph> two_nodes() {
  graph_builder b;
  const value_id made = b.node(plain_op, {b.input({4})}, {4});
  return b.done({b.node(host_op, {made}, {4})});
}

} // namespace

TEST_CASE("a plug-in places nodes as a built-in policy would", "[plan][schedules][C6]") {
  const plan_options last = options_with("last_device");
  CHECK(place(*two_nodes(), gpus_and_fallback(2), last) == placed{2, 2});
  const auto p = make_plan(two_nodes(), cpus(3), last);
  CHECK(p->placement == placed{2, 2});
  CHECK(policy_name(p->options) == "last_device");
  CHECK(last.plugin->description() ==
        fmt::format("the policy plug-in 'last_device' ({})", plugin("last_device").string()));
}

TEST_CASE("the example's plug-in is better than heft on its problem", "[plan][schedules][C6]") {
  graph_builder b;
  std::vector<value_id> made;
  for (const int64_t units : {3, 3, 2, 2, 2})
    made.push_back(b.node(heavy_op, {b.input({16})}, {units << 20}));
  const auto g = b.done(made);
  const auto predicted = [&](const plan_options& options) {
    return predict(*make_plan(g, gpus(2), options), expected_dims(*g, {})).makespan_s;
  };
  const double heft = predicted({.policy = placement_policy::heft}), mine = predicted(options_with("my_policy"));
  CHECK(mine < 0.95 * heft);
  const auto more = gpus_and_fallback(2);
  CHECK(place(*two_nodes(), more, options_with("my_policy"))[1] == 2); // a node that only a fallback device can run
}

TEST_CASE("pins hold under a plug-in", "[plan][pins][schedules]") {
  plan_options last = options_with("last_device");
  last.pins = {{"n0", "vulkan:1"}};
  CHECK(place(*two_nodes(), gpus_and_fallback(2), last) == placed{1, 2});
}

TEST_CASE("a plug-in's wrong answer is refused by its name", "[plan][schedules][E5]") {
  const auto refused = [&](const std::string& name, const std::string& why) {
    INFO(name);
    const plan_options options = options_with(name);
    CHECK_THROWS_WITH(place(*two_nodes(), gpus_and_fallback(2), options),
                      Contains("the policy plug-in '" + name + "'") && Contains(why));
  };
  refused("throws", "threw an exception (out of ideas)");
  refused("throws_a_number", "threw an exception; a policy reports");
  refused("no_such_device", "gave test.plain 'n0' device 3, and there are only 3");
  refused("not_allowed", "gave test.host 'n1' 'vulkan:0', which may not run it; ask `policy_problem::allowed`");
  refused("forgetful", "gave test.plain 'n0' no device");
  refused("reports", "failed: nothing is large enough");
  refused("gives_no_reason", "failed: status 7, and no reason given");
}

TEST_CASE("a file that is not a plug-in of this version is refused by its name", "[plan][schedules][E5]") {
  const auto refused = [&](const fs::path& file, const std::string& why) {
    CHECK_THROWS_WITH(policy_library::open(file), Contains(file.string()) && Contains(why));
  };
  refused(plugin("other_version"), "is for version 0 of the interface, this troupe has version 1: compile it");
  refused(plugin("other_entry"), "exports no function 'troupe_policy'");
  refused(plugin("null"), "'troupe_policy' returned null");
  refused(plugin("taken_name"), "is called 'heft', as a policy that is built in");
  refused(plugin("no_name"), "has no name of 1 to 64 letters");
  refused(plugin("no_function"), "has no function that places");
  refused(plugin("none"), "is not a file");
  refused(fs::path(test::test_plugins()), "is not a file");
  refused(fs::path(test::test_data()) / "small_cnn.onnx", "cannot be loaded");
  CHECK_THROWS_WITH(place(*two_nodes(), cpus(1), {.policy = placement_policy::plug_in}), Contains("none is given"));
}

TEST_CASE("a plan's key depends on the plug-in and its file", "[plan][schedules][E6]") {
  const fs::path copy = fs::temp_directory_path() / fmt::format("troupe_policy_{}.so", getpid());
  fs::copy_file(plugin("last_device"), copy, fs::copy_options::overwrite_existing);
  const auto key = [](std::shared_ptr<const policy_library> with) {
    return plan_key(hash128{1, 2}, cpus(2), {.policy = placement_policy::plug_in, .plugin = std::move(with)});
  };
  const auto same = policy_library::open(copy);
  CHECK(key(same) == key(policy_library::open(plugin("last_device"))));
  CHECK(key(same) != key(policy_library::open(plugin("reports"))));
  fs::remove(copy); // a loaded library stays
  CHECK(place(*two_nodes(), cpus(2), {.policy = placement_policy::plug_in, .plugin = same}) == placed{1, 1});
  fs::copy_file(plugin("last_device"), copy);
  std::ofstream(copy, std::ios::app) << "built anew";
  CHECK(key(same) != key(policy_library::open(copy)));
  fs::remove(copy);
}

TEST_CASE("a function of the program places nodes as a plug-in does", "[plan][schedules][C6]") {
  const auto with = [](const own_policy& policy) {
    return plan_options{.policy = placement_policy::plug_in, .plugin = policy_library::open(policy.handle())};
  };
  uint32_t chosen = 1;
  const auto to_chosen = [&](const policy_problem* p, policy_result* result) {
    std::fill_n(result->device, p->task_count, chosen);
    return 0;
  };
  std::optional<own_policy> policy;
  policy.emplace("mine", to_chosen);
  const plan_options mine = with(*policy);
  const own_policy same("mine", to_chosen);
  CHECK(plan_key({}, cpus(3), mine) != plan_key({}, cpus(3), with(same))); // what they do is not known
  const std::string handle = policy->handle();
  policy.reset();
  CHECK_THROWS_WITH(policy_library::open(handle), Contains("no policy '" + handle + "' any more"));
  CHECK(make_plan(two_nodes(), cpus(3), mine)->placement == placed{1, 1}); // who has it keeps it
  CHECK(policy_name(mine) == "mine");
  chosen = 3;
  CHECK_THROWS_WITH(place(*two_nodes(), cpus(3), mine),
                    Contains("the policy 'mine' gave") && Contains("device 3, and there are only 3"));
}

TEST_CASE("a function of the program may throw, and must have a name", "[plan][schedules][E5]") {
  const own_policy wrong("wrong",
                         [](const policy_problem*, policy_result*) -> int32_t { throw std::runtime_error("no idea"); });
  CHECK_THROWS_WITH(place(*two_nodes(), cpus(3),
                          {.policy = placement_policy::plug_in, .plugin = policy_library::open(wrong.handle())}),
                    Contains("the policy 'wrong'") && Contains("no idea"));
  const auto nothing = [](const policy_problem*, policy_result*) { return 0; };
  for (const char* name : {"", "my policy", "heft"})
    CHECK_THROWS_WITH(own_policy(name, nothing), Contains("a policy cannot be called"));
  CHECK_THROWS_WITH(own_policy("empty", nullptr), Contains("has no function that places"));
}
