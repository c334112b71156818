// Which replicas a strategy makes of the devices at hand.
#include "strategy/replica_sets.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

device_info device(const std::string& name, device_kind kind, bool fallback = false, const std::string& host = "") {
  device_info d;
  d.name = name;
  d.kind = kind;
  d.fallback = fallback;
  d.host = host;
  return d;
}

const device_info gpu0 = device("vulkan:0", device_kind::vulkan), gpu1 = device("vulkan:1", device_kind::vulkan),
                  cpu = device("cpu", device_kind::cpu), spare = device("cpu", device_kind::cpu, true),
                  far_gpu = device("far/vulkan:0", device_kind::vulkan, false, "far"),
                  far_cpu = device("far/cpu", device_kind::cpu, false, "far");

using names = std::vector<std::string>;

std::vector<names> all_of(strategy how, const std::vector<device_info>& devices) {
  std::vector<names> all;
  for (const replica_set& r : replicas_of(how, devices))
    all.push_back(r.all());
  return all;
}

} // namespace

TEST_CASE("a pin to a device that a replica lacks is refused", "[strategy][C1]") {
  const std::vector<device_info> devices{gpu0, gpu1, cpu};
  const auto refused = [&](const replica_set& r, const std::string& device) {
    try {
      check_pins(std::vector<placement_pin>{{"conv*", device}}, r, devices);
    } catch (const error& e) {
      CHECK(e.code() == errc::invalid_argument);
      CHECK_THAT(e.what(), Catch::Contains("'conv*=" + device + "'") && Catch::Contains("only vulkan:0, cpu"));
      return true;
    }
    return false;
  };
  const replica_set mine{{"vulkan:0"}, {"cpu"}};
  CHECK(refused(mine, "vulkan:1"));
  CHECK_FALSE(refused(mine, "vulkan:0"));
  CHECK_FALSE(refused(mine, "cpu"));
  CHECK_FALSE(refused(mine, "far/cpu")); // not there: planning refuses it
  CHECK_FALSE(refused({}, "vulkan:1"));  // all devices
}

TEST_CASE("Each device leads a replica unless it is a fallback", "[strategy][C1][C4]") {
  const strategy how = GENERATE(strategy::data_parallel, strategy::work_stealing);
  CHECK(all_of(how, {gpu0, gpu1, spare}) == std::vector<names>{{"vulkan:0", "cpu"}, {"vulkan:1", "cpu"}});
  CHECK(all_of(how, {cpu, gpu0}) == std::vector<names>{{"cpu"}, {"vulkan:0", "cpu"}});
  CHECK(all_of(how, {spare}) == std::vector<names>{{"cpu"}});
  // A CPU helps the GPUs of its own host.
  CHECK(all_of(how, {cpu, far_gpu, far_cpu}) == std::vector<names>{{"cpu"}, {"far/vulkan:0", "far/cpu"}, {"far/cpu"}});
  CHECK(thrown_by([&] { replicas_of(how, {}); }).code() == errc::invalid_argument);
}

TEST_CASE("Plans over all devices have one replica", "[strategy][C2][C3]") {
  const auto sets = replicas_of(strategy::pipeline, std::vector{gpu0, gpu1, spare});
  REQUIRE(sets.size() == 1);
  CHECK(sets[0].own == names{"vulkan:0", "vulkan:1"}); // two stages
  CHECK(sets[0].helpers == names{"cpu"});
  CHECK(policy_of(strategy::pipeline, placement_policy::single) == placement_policy::pipeline);
  CHECK(policy_of(strategy::model_parallel, placement_policy::single) == placement_policy::heft);
  CHECK(policy_of(strategy::model_parallel, placement_policy::weighted) == placement_policy::weighted);
  CHECK(policy_of(strategy::data_parallel, placement_policy::single) == placement_policy::single);
}

TEST_CASE("A pipeline whose size is not given gets micro-batches for all its stages", "[strategy][C3]") {
  CHECK(micro_batch_of(strategy::pipeline, 128, 4) == 8);
  CHECK(micro_batch_of(strategy::pipeline, 3, 4) == 1);
  CHECK(micro_batch_of(strategy::data_parallel, 128, 4) == 0);
  const stream_options drain{.schedule = pipeline_schedule::fill_drain};
  // One in, one out: a place for each stage, and one for a request that uploads; else places for all of a request.
  CHECK(machine_for(strategy::pipeline, {}, {{}}, 4).depth == 5);
  CHECK(machine_for(strategy::pipeline, drain, {{}}, 4).depth >= 16);
  CHECK(machine_for(strategy::pipeline, {.depth = 3}, {{}}, 4).depth == 3);
  CHECK(machine_for(strategy::work_stealing, {}, {{}, {}}, 1).how == distribution::stealing);
  CHECK(machine_for(strategy::data_parallel, {.shares = share_rule::weighted}, {{}, {}}, 1).how ==
        distribution::weighted);
}
