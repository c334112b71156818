// How many bytes of the weights that are on their way to workers have come; rates that were measured on a link.
#include "cpu/cpu_device.hpp"
#include "device/tells_progress.hpp"
#include "support/catch.hpp"
#include "support/far_device.hpp"
#include "support/graph_builder.hpp"

#include <atomic>
#include <future>

using namespace troupe;
using namespace std::chrono_literals;
using test::far_host;
using test::graph_builder;

namespace {

constexpr auto limit = 60s; // a hang fails a test
constexpr int64_t elements = 1'000'000;

/// A worker without any weights, and a session's client and device of it.
struct worker_and_device {
  explicit worker_and_device(const std::string& name)
      : host({make_cpu_device("cpu")}, {}, name), client(host.connect()), far(remote::make_remote_device(client, 0)) {}

  far_host host;
  std::shared_ptr<remote::host_client> client;
  std::unique_ptr<device> far;
};

/// Adds two constants of 4 MB each.
bound_plan_ptr plan_on(const device_info& where) {
  graph_builder n;
  value_id sum = n.input({elements});
  for (int i = 0; i < 2; ++i) {
    tensor weight(dtype::float32, {elements});
    std::fill_n(weight.mutable_data<float>(), elements, static_cast<float>(i) + 0.5f);
    sum = n.op("Add", {sum, n.constant(fmt::format("w{}", i), weight)});
  }
  return bind_segment(make_plan(n.program({sum}), {where}, {}), 0, {});
}

template <class Condition>
void await(Condition&& holds) {
  for (const auto end = std::chrono::steady_clock::now() + limit; !holds(); std::this_thread::sleep_for(1ms))
    REQUIRE(std::chrono::steady_clock::now() < end);
}

} // namespace

TEST_CASE("weights on their way to several workers are counted", "[remote][D3]") {
  worker_and_device one("one"), two("two");
  std::atomic<int> progress = 0;
  dynamic_cast<tells_progress&>(*one.far).on_progress([&] { ++progress; });
  std::vector<std::future<void>> installs;
  for (worker_and_device* w : {&one, &two}) {
    w->host.link(0).set_conditions({.bytes_per_second = 5e5}); // 16 s for all
    installs.push_back(
        std::async(std::launch::async, [w, bound = plan_on(w->far->info())] { w->far->install(bound, 0); }));
  }
  remote::load_progress first;
  for (const worker_and_device* w : {&one, &two}) {
    await([&] { return w->client->news().loads().came > 0; });
    first = w->client->news().loads();
    CHECK(first.total == 2 * elements * 4);
    CHECK(first.came < first.total);
  }
  await([&] { return two.client->news().loads().came > first.came; });
  await([&] { return progress > 1; }); // so the device is not taken for silent meanwhile
  for (worker_and_device* w : {&one, &two})
    w->host.link(0).set_conditions({});
  for (std::future<void>& done : installs)
    done.get();
  for (const worker_and_device* w : {&one, &two}) {
    CHECK(w->client->news().loads().total == 0);
    CHECK(w->client->news().loads().came == 0);
  }
}

TEST_CASE("a rate that a short measurement of a link cannot tell is taken from an earlier one", "[remote][C11]") {
  const remote::link_figures earlier{.round_trip_s = 9, .up_bytes_per_s = 1e9, .down_bytes_per_s = 2e9};
  remote::link_figures now{
      .round_trip_s = 1e-3, .up_bytes_per_s = 1e6, .down_bytes_per_s = 2e6, .up_tells = true, .down_tells = false};
  CHECK(remote::believed(now, {}).down_bytes_per_s == 2e6);
  remote::link_figures both = remote::believed(now, earlier);
  CHECK(both.round_trip_s == 1e-3);
  CHECK(both.up_bytes_per_s == 1e6);
  CHECK(both.down_bytes_per_s == 2e9);
  now.up_tells = false;
  CHECK(remote::believed(now, earlier).up_bytes_per_s == 1e9);
}

TEST_CASE("a measurement tells a slow link's speed, and that it cannot tell a link's that delays", "[remote][C11]") {
  const auto offers = std::make_shared<remote::outbox>();
  far_host host({make_cpu_device("cpu")});
  const auto slow = host.connect(offers, {.bytes_per_second = 1e6});
  CHECK(slow->figures().up_tells);
  CHECK(slow->figures().up_bytes_per_s < 1.1e6); // each byte takes its time, however busy the machine is
  CHECK(slow->devices().at(0).network_in.bytes_per_s == slow->figures().up_bytes_per_s);
  const auto far = host.connect(offers, {.delay = 200ms});
  CHECK_FALSE(far->figures().up_tells); // 4 MB take as long as nothing does
  CHECK(far->figures().round_trip_s >= 0.4);
}
