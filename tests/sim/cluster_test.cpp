// Cluster files: how they are read, and errors in them.
#include "sim/cluster.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::sim;
using Catch::Contains;
using test::thrown_by;

namespace {

const std::string two_hosts = R"({
  "version": 1,
  "hosts": [
    {"devices": [{"name": "cpu", "kind": "cpu", "units": 16, "memory_bytes": 1000000}]},
    {"name": "node", "count": 3, "link": {"bytes_per_s": 1e9, "latency_s": 1e-4},
     "devices": [{"name": "gpu", "count": 2, "kind": "vulkan", "units": 132, "memory_bytes": 5000000,
                  "profile": {"float32": 5e13, "up.bytes_per_s": 5e10, "up.latency_s": 1e-5},
                  "features": {"cooperative_matrix": true}}]}
  ],
  "shared_links": [{"name": "switch", "bytes_per_s": 2e9, "hosts": ["node:0", "node:1", "node:2"]}]
})";

std::string complaint(const std::string& text) {
  const error e = thrown_by([&] { parse_cluster(text, {}); });
  CHECK(e.code() == errc::invalid_argument);
  return e.what();
}

std::string with_device(const std::string& members) {
  return R"({"version": 1, "hosts": [{"devices": [{)" + members + "}]}]}";
}

} // namespace

TEST_CASE("a cluster file says hosts, devices and links", "[sim][cluster]") {
  const cluster c = parse_cluster(two_hosts, {});
  REQUIRE(c.devices.size() == 7);
  CHECK(c.devices[0].name == "cpu");
  CHECK(c.devices[1].name == "node:0/gpu:0");
  CHECK(c.devices[6].name == "node:2/gpu:1");
  CHECK(c.devices[6].host == "node:2");
  CHECK(c.devices[6].profile.flops_per_s[1] == 5e13);
  CHECK(c.devices[6].profile.up == link_speed{5e10, 1e-5});
  CHECK(c.devices[6].network_in == link_speed{1e9, 1e-4});
  CHECK(c.devices[6].gpu->cooperative_matrix);
  CHECK(c.devices[6].profile.chunk_s == Approx(typical_gpu(132, true).chunk_s + 2e-4));
  CHECK_FALSE(is_remote(c.devices[0]));
  REQUIRE(c.links.size() == 1);
  CHECK(c.links[0].hosts.size() == 3);
}

TEST_CASE("a cluster that is written is read again", "[sim][cluster]") {
  const cluster c = parse_cluster(two_hosts, {});
  CHECK(parse_cluster(write_cluster(c), {}) == c);
  std::vector<device_info> slow(1);
  slow[0].name = "slow:25";
  slow[0].kind = device_kind::slow;
  CHECK(parse_cluster(write_cluster(captured(slow)), {}).devices[0].kind == device_kind::slow);
}

TEST_CASE("an engine's host sends to all others together as fast as its fastest link", "[sim][cluster]") {
  std::vector<device_info> devices(3);
  devices[0].name = "cpu";
  devices[1].name = "a/cpu", devices[1].host = "a";
  devices[1].network_in = {1e9, 1e-4}, devices[1].network_out = {4e9, 1e-4};
  devices[2].name = "b/cpu", devices[2].host = "b";
  devices[2].network_in = {2e9, 1e-4}, devices[2].network_out = {3e9, 1e-4};
  const cluster c = captured(devices);
  CHECK(c.network == own_network{4e9, 2e9});
  CHECK(parse_cluster(write_cluster(c), {}).network == c.network);
  CHECK(captured({devices[0]}).network == own_network{});
  CHECK(parse_cluster(write_cluster(captured({devices[0]})), {}).network == own_network{});
  CHECK_THAT(complaint(R"({"version": 1, "own_network": {"speed": 1}, "hosts": []})"), Contains("own_network"));
}

TEST_CASE("a device like one that was measured has its speeds", "[sim][cluster]") {
  measured_profile known{.device = {"vulkan", "Fast card", 132}, .values = {{"float32", 4e13}}, .nodes = {}};
  const cluster c =
      parse_cluster(with_device(R"("name": "g", "kind": "vulkan", "memory_bytes": 1, "like": "Fast card")"), {{known}});
  CHECK(c.devices[0].profile.flops_per_s[1] == 4e13);
  CHECK(c.devices[0].description == "Fast card");
  CHECK_THAT(thrown_by([&] {
               parse_cluster(with_device(R"("name": "g", "kind": "vulkan", "memory_bytes": 1, "like": "Other")"),
                             {{known}});
             }).what(),
             Contains("hosts[0].devices[0].like") && Contains("'Fast card' (vulkan)"));
}

TEST_CASE("what is wrong in a cluster file is named with its place", "[sim][cluster]") {
  CHECK_THAT(complaint("{"), Contains("JSON"));
  CHECK_THAT(complaint("[]"), Contains("an object is needed"));
  CHECK_THAT(complaint("{}"), Contains("'version' is missing"));
  CHECK_THAT(complaint(R"({"version": 2, "hosts": []})"), Contains("version"));
  CHECK_THAT(complaint(R"({"version": 1, "hosts": []})"), Contains("there must be a device"));
  CHECK_THAT(complaint(with_device(R"("name": "", "kind": "cpu", "memory_bytes": 1)")),
             Contains("hosts[0].devices[0].name"));
  CHECK_THAT(complaint(with_device(R"("name": "a", "kind": "tpu", "memory_bytes": 1)")),
             Contains("there is no kind 'tpu'; there are cpu, vulkan, null, slow"));
  CHECK_THAT(complaint(with_device(R"("name": "a", "kind": "cpu")")), Contains("'memory_bytes' is missing"));
  CHECK_THAT(complaint(with_device(R"("name": "a", "kind": "cpu", "memory_bytes": -1)")), Contains("from 0 to"));
  CHECK_THAT(complaint(with_device(R"("name": "a", "kind": "cpu", "memory_bytes": 99999999999999999999)")),
             Contains("a whole number"));
  CHECK_THAT(complaint(with_device(R"("name": "a", "kind": "cpu", "memory_bytes": 1, "colour": 1)")),
             Contains("there is no 'colour'; there are name"));
  CHECK_THAT(complaint(with_device(R"("name": "a", "kind": "cpu", "memory_bytes": 1, "profile": {"speed": 1})")),
             Contains("hosts[0].devices[0].profile") && Contains("'speed'"));
  CHECK_THAT(complaint(with_device(R"("name": "a", "kind": "cpu", "memory_bytes": 1, "profile": {"float32": 0})")),
             Contains("cannot be 0"));
  CHECK_THAT(complaint(with_device(R"("name": "a", "kind": "cpu", "memory_bytes": 1, "count": 10001)")),
             Contains("from 1 to 10000"));
  CHECK_THAT(complaint(with_device(
                 R"("name": "a", "kind": "cpu", "memory_bytes": 1}, {"name": "a", "kind": "null", "memory_bytes": 1)")),
             Contains("there are two devices 'a'"));
  CHECK_THAT(complaint(with_device(R"("name": "a", "kind": "null", "memory_bytes": 1, "count": 10000}, )"
                                   R"({"name": "b", "kind": "null", "memory_bytes": 1)")),
             Contains("hosts[0].devices[1]: there are more than 10000 devices"));
  CHECK_THAT(complaint(R"({"version": 1, "hosts": [{"name": "n", "devices": []}]})"), Contains("'link' is missing"));
  std::string twice = two_hosts;
  twice.replace(twice.find("node:2"), 6, "node:1");
  CHECK_THAT(complaint(twice), Contains("shared_links[0].hosts[2]: 'node:1' is listed twice"));
  twice.replace(twice.rfind("node:1"), 6, "node:9");
  CHECK_THAT(complaint(twice), Contains("there is no 'node:9'"));
}
