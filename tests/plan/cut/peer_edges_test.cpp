// GPUs that wait for each other: routes of their values, and when their chunks may be sent.
#include "plan/cut/ready_set.hpp"
#include "plan/cut/transfers.hpp"
#include "plan/graphs.hpp"
#include "plan/plan_key.hpp"
#include "plan/show/print.hpp"
#include "support/catch.hpp"
#include "wire/plans.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

std::vector<device_info> peers(size_t count) {
  std::vector<device_info> devices = gpus(count);
  for (device_info& d : devices)
    d.peer_set = 1;
  return devices;
}

/// in → a on 0 → c on 1 → d on 0, and e on 1 after c.
std::shared_ptr<const plan> to_and_fro(const std::vector<device_info>& devices) {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id a = b.node(plain_op, {in}, {4});
  const value_id c = b.node(plain_op, {a}, {4});
  const value_id d = b.node(plain_op, {c}, {4});
  const auto p = make_plan(b.done({b.node(plain_op, {d}, {4})}), devices, {placement_policy::round_robin});
  verify(*p);
  return p;
}

std::vector<std::string> routes(const plan& p) {
  std::vector<std::string> all;
  for (const transfer& t : p.transfers)
    all.emplace_back(to_string(t.route));
  return all;
}

} // namespace

TEST_CASE("values between GPUs of one set take the route of peers", "[plan][peers]") {
  const auto p = to_and_fro(peers(2));
  CHECK(routes(*p) == std::vector<std::string>{"host_block", "peer", "peer", "peer", "host_block"});
  CHECK_THAT(to_text(*p), Contains("from vulkan:0 (chunk 0) to vulkan:1 (chunk 1), peer\n"));
  CHECK(routes(*to_and_fro(gpus(2))) == std::vector<std::string>(5, "host_block"));
  std::vector<device_info> apart = peers(2);
  apart[1].peer_set = 2;
  CHECK(routes(*to_and_fro(apart)) == std::vector<std::string>(5, "host_block"));
  CHECK(plan_key({}, apart, {}) != plan_key({}, peers(2), {}));
  apart = peers(2);
  apart[1].host = "far";
  CHECK(routes(*to_and_fro(apart))[1] == "remote");
}

TEST_CASE("a plan with peers is the same on another host", "[plan][peers][wire]") {
  const auto p = to_and_fro(peers(2));
  plan moved = *p;
  moved.transfers[1].route = transfer_route::host_block;
  CHECK(wire::fingerprint(moved) != wire::fingerprint(*p));
  CHECK_THROWS_WITH(verify(moved), Contains("is host_block, but its ends need peer"));
}

TEST_CASE("a chunk on a peer is ready when the chunks that it reads have been sent", "[plan][peers]") {
  const auto p = to_and_fro(peers(2));
  std::vector<chunk_id> ready;
  ready_set set(*p);
  set.start(0, ready);
  set.sent(0, ready, true);
  CHECK(ready == std::vector<chunk_id>{0, 1});
  CHECK(set.awaits_peers(1));
  set.sent(1, ready, true);
  CHECK(ready == std::vector<chunk_id>{0, 1, 2});
  set.sent(2, ready, false); // as if its value were too large
  CHECK(ready == std::vector<chunk_id>{0, 1, 2});
  CHECK(set.awaits_others(2));
  CHECK(set.awaits_others(1));
  CHECK(!set.awaits_others(0));
  set.completed(0, ready);
  CHECK(!set.awaits_others(1));
  CHECK(!set.awaits_peers(1));
  set.completed(1, ready);
  CHECK(!set.awaits_others(2));
  CHECK(ready == std::vector<chunk_id>{0, 1, 2}); // nothing is ready twice
  set.completed(2, ready);
  CHECK(ready == std::vector<chunk_id>{0, 1, 2, 3});
  CHECK(!set.awaits_peers(3));
}

TEST_CASE("with completion by the host a chunk on a peer waits for the end", "[plan][peers]") {
  const auto p = to_and_fro(peers(2));
  std::vector<chunk_id> ready;
  ready_set careful(*p, completion_mode::host);
  careful.start(0, ready);
  careful.sent(0, ready, true);
  CHECK(ready == std::vector<chunk_id>{0});
  careful.completed(0, ready);
  CHECK(ready == std::vector<chunk_id>{0, 1});
}
