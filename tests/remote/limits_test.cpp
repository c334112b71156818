// Limits that a worker's owner sets: memory over all sessions, and hosts.
#include "cpu/cpu_device.hpp"
#include "support/catch.hpp"
#include "support/far_device.hpp"
#include "support/graph_builder.hpp"

#include <future>

using namespace troupe;
using namespace std::chrono_literals;
using test::far_host;
using test::graph_builder;

namespace {

constexpr auto limit = 20s; // a hang fails a test

/// A device that lends less memory than it has.
class small_device final : public device {
public:
  small_device(std::unique_ptr<device> inner, int64_t memory) : inner_(std::move(inner)), info_(inner_->info()) {
    info_.memory_bytes = memory;
  }
  const device_info& info() const override { return info_; }
  void install(bound_plan_ptr bound, device_index self) override { inner_->install(std::move(bound), self); }
  void retire(uint64_t bound_plan) override { inner_->retire(bound_plan); }
  void submit(chunk_work work, chunk_done done) override { inner_->submit(std::move(work), std::move(done)); }
  void fetch(const device_tensor& value, const fetch_done& done) override { inner_->fetch(value, done); }
  device_tensor put(const tensor& value) override { return inner_->put(value); }
  device_stats stats() const override { return inner_->stats(); }

private:
  const std::unique_ptr<device> inner_;
  device_info info_;
};

bound_plan_ptr one_step(const device_info& on) {
  graph_builder n;
  const value_id x = n.input({100, 300});
  return bind_segment(make_plan(n.program({n.op("Relu", {x})}), {on}, {}), 0, {});
}

/// Returns the bytes that one session's plan needs.
int64_t needed() {
  return bytes_needed(*one_step(make_cpu_device("cpu")->info())->layout, 0);
}

/// One session of a worker, with a plan for its device.
struct member {
  explicit member(far_host& host)
      : client(host.connect()), far(remote::make_remote_device(client, 0)), bound(one_step(far->info())) {
    client->news().on_memory_wanted([this](uint32_t, int64_t bytes) { wanted.push_back(bytes); });
  }
  failure install() {
    return capture([&] { far->install(bound, 0); });
  }
  chunk_result run(uint32_t slot) {
    auto ended = std::make_shared<std::promise<chunk_result>>();
    chunk_work work{.bound_plan = bound->id, .chunk = 0, .execution = slot + 1u, .slot = slot};
    tensor in(dtype::float32, {100, 300});
    std::fill_n(in.mutable_data<float>(), in.size(), 2.f);
    work.uploads.push_back(std::make_shared<moved_value>(in));
    work.downloads.push_back(std::make_shared<moved_value>());
    far->submit(std::move(work), [ended](chunk_result r) { ended->set_value(std::move(r)); });
    auto result = ended->get_future();
    REQUIRE(result.wait_for(limit) == std::future_status::ready);
    return result.get();
  }

  std::vector<int64_t> wanted; // read after the worker has answered something later
  std::shared_ptr<remote::host_client> client;
  std::unique_ptr<device> far;
  bound_plan_ptr bound;
};

std::unique_ptr<far_host> open_small(int64_t memory, std::chrono::milliseconds patience) {
  return std::make_unique<far_host>(
      std::vector<std::shared_ptr<device>>{std::make_shared<small_device>(make_cpu_device("cpu"), memory)},
      remote::service_options{.memory_patience = patience});
}

/// A link whose other end is said to be of a host.
class named_link final : public remote::link {
public:
  explicit named_link(std::string host) : host_(std::move(host)) {}
  void send(remote::frame) override {}
  void receive(remote::link_handler handler) override { handler_ = std::move(handler); }
  void close() override {}
  std::string other_host() const override { return host_; }
  void end() { handler_.on_closed("the test ends it"); }

private:
  const std::string host_;
  remote::link_handler handler_;
};

} // namespace

TEST_CASE("a device's limit holds over all sessions of a worker", "[remote][B2][D2]") {
  const auto host = open_small(needed() * 3 / 2, 0ms);
  auto one = std::make_unique<member>(*host);
  member two(*host);
  REQUIRE_FALSE(one->install().failed());
  const failure refused = two.install();
  CHECK(refused.code == errc::out_of_memory);
  CHECK_THAT(refused.message, Catch::Contains("device 'cpu' has no room now"));
  SECTION("until a session retires what it has") {
    one->far->retire(one->bound->id);
    one->far->stats(); // the worker has heard that
  }
  SECTION("until a session is gone") {
    one->client->close();
    for (const auto end = std::chrono::steady_clock::now() + limit; host->service().sessions() > 1;) {
      REQUIRE(std::chrono::steady_clock::now() < end);
      std::this_thread::sleep_for(1ms);
    }
  }
  CHECK_FALSE(two.install().failed());
  CHECK(two.run(0).ok());
}

TEST_CASE("an install waits for memory of other sessions, and they are told", "[remote][B2][D2]") {
  const auto host = open_small(needed() * 3 / 2, limit);
  member one(*host), two(*host);
  REQUIRE_FALSE(one.install().failed());
  std::promise<int64_t> lacks, lacks_no_more;
  one.client->news().on_memory_wanted([&](uint32_t device, int64_t bytes) {
    CHECK(device == 0);
    (bytes > 0 ? lacks : lacks_no_more).set_value(bytes);
  });
  auto installed = std::async(std::launch::async, [&] { return two.install(); });
  auto lack = lacks.get_future();
  REQUIRE(lack.wait_for(limit) == std::future_status::ready);
  CHECK(lack.get() == 2 * needed() - needed() * 3 / 2);
  one.far->retire(one.bound->id);
  CHECK_FALSE(installed.get().failed());
  CHECK(lacks_no_more.get_future().wait_for(limit) == std::future_status::ready);
  CHECK(two.run(0).ok());
}

TEST_CASE("a session that waits for memory and is cut off lets the next one have it", "[remote][B2][D2]") {
  const auto host = open_small(needed() * 3 / 2, limit);
  member one(*host);
  auto two = std::make_unique<member>(*host);
  REQUIRE_FALSE(one.install().failed());
  std::promise<void> told;
  one.client->news().on_memory_wanted([&, first = true](uint32_t, int64_t) mutable {
    if (std::exchange(first, false))
      told.set_value();
  });
  auto waiting = std::async(std::launch::async, [&] { return two->install(); });
  REQUIRE(told.get_future().wait_for(limit) == std::future_status::ready);
  host->link(1).cut();
  CHECK(waiting.get().code == errc::device_lost);
  one.far->retire(one.bound->id);
  member three(*host);
  CHECK_FALSE(three.install().failed());
}

TEST_CASE("a run beside others needs memory too", "[remote][B2][D2]") {
  const auto host = open_small(needed() * 5 / 2, 0ms);
  member one(*host), two(*host);
  REQUIRE_FALSE(one.install().failed());
  REQUIRE_FALSE(two.install().failed());
  CHECK(one.run(0).ok());
  const chunk_result refused = one.run(1);
  CHECK(refused.code == errc::out_of_memory);
  CHECK_THAT(refused.message, Catch::Contains("device 'cpu' has no room now"));
  CHECK(one.run(0).ok());
  two.far->retire(two.bound->id);
  two.far->stats();
  one.far->end(2); // the refused execution failed: nothing of it runs until it is ended
  CHECK(one.run(1).ok());
}

TEST_CASE("a worker says which host it refuses, and why", "[remote][D2]") {
  std::vector<std::string> refused;
  std::vector<std::shared_ptr<device>> cpu{make_cpu_device("cpu")};
  far_host host(std::move(cpu), {.sessions = 3,
                                 .sessions_per_host = 2,
                                 .allowed = {"one", "two"},
                                 .log = [&](const std::string& event, const auto& facts) {
                                   if (event == "refused")
                                     refused.push_back(facts.at(0).second + ": " + facts.at(2).second);
                                 }});
  const auto call = [&](const std::string& from, remote::role role = remote::role::session) {
    auto link = std::make_shared<named_link>(from);
    host.service().accept(remote::encode(remote::hello{.role = role, .name = "test"}), link);
    return link;
  };
  const auto first = call("one"), second = call("one");
  CHECK_THROWS_WITH(call("one"), Catch::Contains("host 'one' has 2 sessions here already"));
  CHECK_THROWS_WITH(call("three"), Catch::Contains("host 'three' is not one of those"));
  const auto third = call("two");
  CHECK_THROWS_WITH(call("two"), Catch::Contains("3 sessions already"));
  REQUIRE(refused.size() == 3);
  CHECK_THAT(refused[0], Catch::StartsWith("one: host 'one' has 2 sessions"));
  CHECK_THAT(refused[1], Catch::StartsWith("three: host 'three' is not one of those"));
  const auto peer = call("three", remote::role::peer); // asks for values that it was told the keys of
  first->end();
  CHECK_NOTHROW(call("one")->end());
  for (const auto& l : {second, third, peer})
    l->end();
}
