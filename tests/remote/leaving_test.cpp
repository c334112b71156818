// A worker that leaves, and the sessions on it.
#include "cpu/cpu_device.hpp"
#include "support/catch.hpp"
#include "support/far_device.hpp"
#include "support/fault_device.hpp"
#include "support/graph_builder.hpp"

#include <future>

using namespace troupe;
using namespace std::chrono_literals;
using test::far_host;
using test::graph_builder;

namespace {

constexpr auto limit = 20s; // a hang fails a test

bound_plan_ptr one_step(const device_info& on) {
  graph_builder n;
  const value_id x = n.input({4});
  return bind_segment(make_plan(n.program({n.op("Relu", {x})}), {on}, {}), 0, {});
}

tensor twos() {
  tensor t(dtype::float32, {4});
  std::fill_n(t.mutable_data<float>(), 4, 2.f);
  return t;
}

/// A session that keeps a leaving worker waiting for as long as the test wants.
struct session {
  explicit session(far_host& host) : client(host.connect()), far(remote::make_remote_device(client, 0)) {
    client->on_leaving([this](const std::string& why, const std::shared_ptr<const void>& n) {
      need = n;
      told.set_value(why);
    });
    client->on_end([e = ended](const std::string& why) { e->set_value(why); }); // perhaps when the test is over
  }
  std::string await_leaving() {
    auto why = told.get_future();
    REQUIRE(why.wait_for(limit) == std::future_status::ready);
    return why.get();
  }
  std::string await_end() {
    auto why = ended->get_future();
    REQUIRE(why.wait_for(limit) == std::future_status::ready);
    return why.get();
  }

  std::promise<std::string> told;
  const std::shared_ptr<std::promise<std::string>> ended = std::make_shared<std::promise<std::string>>();
  std::shared_ptr<const void> need; // from `told` on
  std::shared_ptr<remote::host_client> client;
  std::unique_ptr<device> far;
};

} // namespace

TEST_CASE("a worker that leaves refuses callers and lets runs in flight end", "[remote][D5]") {
  const auto latch = std::make_shared<hang_latch>();
  far_host host({std::make_shared<fault_device>(make_cpu_device("cpu"), fault_script{.hang_at = 0, .latch = latch})});
  session s(host);
  const auto bound = one_step(s.far->info());
  s.far->install(bound, 0);
  std::promise<chunk_result> ran;
  chunk_work work{.bound_plan = bound->id, .chunk = 0, .execution = 1};
  work.uploads.push_back(std::make_shared<moved_value>(twos()));
  work.downloads.push_back(std::make_shared<moved_value>());
  s.far->submit(std::move(work), [&](chunk_result r) { ran.set_value(std::move(r)); });
  CHECK_FALSE(host.service().drain(0ms));
  CHECK(s.await_leaving() == "its owner ends it");
  remote::frame answer;
  CHECK_THROWS_WITH(host.open(remote::encode(remote::hello{.name = "late"}), answer), "the worker is leaving");
  latch->release();
  auto result = ran.get_future();
  REQUIRE(result.wait_for(limit) == std::future_status::ready);
  CHECK(result.get().ok());
  CHECK_FALSE(host.service().drain(0ms));
  s.need = nullptr;
  CHECK(host.service().drain(limit));
  CHECK(s.await_end() == "host 'far' is gone: its owner ends it");
}

TEST_CASE("a worker that leaves is needed for values that it keeps", "[remote][D4][D5]") {
  far_host host({make_cpu_device("cpu")});
  session s(host);
  device_tensor kept = s.far->put(twos());
  CHECK_FALSE(host.service().drain(0ms));
  s.await_leaving();
  s.need = nullptr;
  std::promise<fetch_result> fetched;
  s.far->fetch(kept, [&](fetch_result r) { fetched.set_value(std::move(r)); });
  auto back = fetched.get_future();
  REQUIRE(back.wait_for(limit) == std::future_status::ready);
  CHECK(back.get().value.values<float>()[3] == 2.f);
  CHECK(host.service().sessions() == 1);
  kept = nullptr;
  CHECK(host.service().drain(limit));
}

TEST_CASE("a worker that leaves does not wait for a session that needs nothing", "[remote][D5]") {
  far_host host({make_cpu_device("cpu")});
  const auto client = host.connect();
  CHECK(host.service().drain(limit));
}

TEST_CASE("a worker that does not wait any longer takes the values that it kept with it", "[remote][D5]") {
  auto host = std::make_unique<far_host>(std::vector<std::shared_ptr<device>>{make_cpu_device("cpu")});
  session s(*host);
  const device_tensor kept = s.far->put(twos());
  CHECK_FALSE(host->service().drain(0ms));
  s.await_leaving();
  host->link(0).cut();
  CHECK(s.await_end() == "host 'far' is gone: its owner ends it");
  CHECK_THROWS_WITH(s.far->put(twos()), Catch::Contains("host 'far' is gone"));
}
