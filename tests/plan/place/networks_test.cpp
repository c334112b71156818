// Plans over hosts: the costs of the network between them, and how heft and dmda place nodes because of that.
#include "plan/estimate/predict.hpp"
#include "plan/graphs.hpp"
#include "plan/plan_key.hpp"
#include "plan/show/print.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

constexpr double gflop = 1e9;

op_cost product_cost(const attributes&, const call_shapes&) {
  return {.flops = gflop, .bytes = 4e6};
}
const op_def product_op{
    .domain = "test", .name = "product", .since = 1, .inputs = {1, 255}, .infer = infer_nothing, .cost = product_cost};

/// `count` products one after the other, of a million elements.
std::shared_ptr<const graph> products(size_t count) {
  graph_builder b;
  value_id v = b.input({1'000'000});
  for (size_t i = 0; i < count; ++i)
    v = b.node(product_op, {v}, {1'000'000});
  return b.done({v});
}

device_info on_host(const std::string& name, const std::string& host, double flops_per_s, link_speed link) {
  device_info d{.name = name, .host = host, .memory_bytes = int64_t{1} << 40, .network_in = link, .network_out = link};
  d.profile.flops_per_s.fill(flops_per_s);
  return d;
}

/// A device of this process with 100 GFLOP/s and one of another host with ten times that.
std::vector<device_info> here_and_far(link_speed link) {
  return {on_host("here", "", 1e11, {}), on_host("far/gpu", "far", 1e12, link)};
}

size_t nodes_on(const plan& p, device_index d) {
  return static_cast<size_t>(std::count(p.placement.begin(), p.placement.end(), d));
}

constexpr link_speed fast{.bytes_per_s = 1e10, .latency_s = 5e-5}, slow{.bytes_per_s = 1e7, .latency_s = 1e-2};
const auto both_policies = {placement_policy::heft, placement_policy::dmda};

} // namespace

TEST_CASE("a move costs the ends' memories and the network between their hosts", "[plan][cost][C11]") {
  device_info here{.name = "here"}, gpu{.name = "gpu"};
  gpu.profile.down = {.bytes_per_s = 100, .latency_s = 1};
  gpu.profile.up = {.bytes_per_s = 50, .latency_s = 2};
  CHECK(move_seconds(200, gpu, gpu) == Approx(1 + 2 + 2 + 4));
  CHECK(move_seconds(200, here, here) == 0); // through the host's own memory
  device_info far = on_host("far/a", "far", 1, {}), near = on_host("near/a", "near", 1, {});
  far.network_in = {.bytes_per_s = 10, .latency_s = 3};
  far.network_out = {.bytes_per_s = 20, .latency_s = 3};
  near.network_in = near.network_out = {.bytes_per_s = 40, .latency_s = 1};
  CHECK(network_seconds(200, nullptr, &far) == Approx(23));
  CHECK(network_seconds(200, &far, nullptr) == Approx(13));
  CHECK(network_seconds(200, &here, &far) == Approx(23));
  CHECK(network_seconds(200, &far, &near) == Approx(13)); // the slower link counts
  CHECK(network_seconds(200, &near, &far) == Approx(23));
  CHECK(network_seconds(200, &far, &far) == 0);
  CHECK(network_seconds(200, &here, nullptr) == 0);
  CHECK(move_seconds(200, gpu, far) == Approx(3 + 23));
}

TEST_CASE("a slow network keeps a model here, a fast one takes it to a faster host", "[plan][C11]") {
  for (placement_policy policy : both_policies) {
    const auto stays = make_plan(products(8), here_and_far(slow), {.policy = policy});
    CHECK(nodes_on(*stays, 0) == 8);
    const auto goes = make_plan(products(8), here_and_far(fast), {.policy = policy});
    CHECK(nodes_on(*goes, 1) == 8);
    const std::vector<shape> dims = expected_dims(*goes->program, {});
    CHECK(predict(*goes, dims).makespan_s < 0.02); // of 80 ms here
    CHECK(predict(*goes, dims).makespan_s > 2 * (4e6 / fast.bytes_per_s + fast.latency_s));
  }
}

TEST_CASE("two devices of one host exchange values freely, two hosts do not", "[plan][C11]") {
  // Each product runs well on one of two far devices alone.
  const auto seconds = [](const std::string& other) {
    const auto p = make_plan(
        products(4),
        {on_host("here", "", 1e9, {}), on_host("far/a", "far", 1e12, slow), on_host(other + "/b", other, 1e12, slow)},
        {.pins = {{"n0", "far/a"}, {"n1", other + "/b"}, {"n2", "far/a"}, {"n3", other + "/b"}}});
    return predict(*p, expected_dims(*p->program, {})).makespan_s;
  };
  const double move = 4e6 / slow.bytes_per_s + slow.latency_s;
  CHECK(seconds("far") == Approx(2 * move).epsilon(0.05));  // in and out
  CHECK(seconds("near") == Approx(5 * move).epsilon(0.05)); // three more between
}

TEST_CASE("the network is part of a plan's key", "[plan][C11]") {
  const auto key = [](const std::vector<device_info>& devices) { return plan_key({}, devices, {}); };
  const std::vector<device_info> devices = here_and_far(fast);
  for (double link_speed::*field : {&link_speed::bytes_per_s, &link_speed::latency_s})
    for (link_speed device_info::*way : {&device_info::network_in, &device_info::network_out}) {
      std::vector<device_info> changed = devices;
      changed[1].*way.*field *= 2;
      CHECK(key(changed) != key(devices));
    }
}

TEST_CASE("a plan over hosts shows their networks and the times of moves over them", "[plan][C11]") {
  const auto p = make_plan(products(2), here_and_far(fast), {.pins = {{"*", "far/gpu"}}});
  const auto bound = bind_segment(p, 0, {});
  CHECK_THAT(to_text(*p, bound.get()),
             Contains("on host far (network 10000.0 MB/s there, 10000.0 MB/s back)") && Contains("remote, 0.450 ms"));
  CHECK_THAT(to_json(*p, bound.get()), Contains("\"network_ms\": 0.45") && Contains("\"host\": \"far\""));
}
