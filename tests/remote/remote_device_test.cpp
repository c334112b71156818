// Devices of other hosts over links in memory: values, losses, two sessions on one worker, peers.
#include "cpu/cpu_device.hpp"
#include "support/catch.hpp"
#include "support/chunk_works.hpp"
#include "support/far_device.hpp"
#include "support/fault_device.hpp"
#include "support/graph_builder.hpp"
#include "support/tapped_device.hpp"

#include <future>
#include <set>
#include <thread>

using namespace troupe;
using namespace std::chrono_literals;
using test::far_host;
using test::graph_builder;

namespace {

constexpr auto limit = 20s; // a hang fails a test

std::vector<std::shared_ptr<device>> cpus(size_t count) {
  std::vector<std::shared_ptr<device>> all;
  for (size_t i = 0; i < count; ++i)
    all.push_back(make_cpu_device(fmt::format("cpu{}", i)));
  return all;
}

tensor ramp(shape dims) {
  tensor t(dtype::float32, std::move(dims));
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = static_cast<float>(i % 1000) - 500;
  return t;
}

std::future<chunk_result> run(device& d, chunk_work work) {
  auto ended = std::make_shared<std::promise<chunk_result>>();
  d.submit(std::move(work), [ended](chunk_result r) { ended->set_value(std::move(r)); });
  return ended->get_future();
}

chunk_result get(std::future<chunk_result> f) {
  REQUIRE(f.wait_for(limit) == std::future_status::ready);
  return f.get();
}

bool same_floats(const tensor& a, const tensor& b) {
  const auto x = a.values<float>(), y = b.values<float>();
  return a.dims() == b.dims() && std::equal(x.begin(), x.end(), y.begin());
}

/// Two nodes in two chunks, on the devices of `infos`.
std::shared_ptr<const plan> two_steps(std::vector<device_info> infos, shape dims) {
  graph_builder n;
  const value_id x = n.input(to_symbolic(dims));
  return make_plan(n.program({n.op("Neg", {n.op("Relu", {x})})}), std::move(infos), {placement_policy::round_robin});
}

/// Two devices with the two steps' plan on them.
struct two_devices {
  two_devices(std::unique_ptr<device> one, std::unique_ptr<device> two, shape dims)
      : first(std::move(one)), second(std::move(two)),
        bound(bind_segment(two_steps({first->info(), second->info()}, std::move(dims)), 0, {})) {
    first->install(bound, 0);
    second->install(bound, 1);
  }
  std::unique_ptr<device> first, second;
  bound_plan_ptr bound;
};

chunk_work far_work(const bound_plan& bound, chunk_id id, std::vector<value_ref> uploads, bool comes_here) {
  chunk_work work{.bound_plan = bound.id, .chunk = id};
  work.uploads = std::move(uploads);
  work.downloads.push_back(std::make_shared<moved_value>(destination::host, comes_here));
  return work;
}

/// A device that gives values as long as the test wants, and does not keep them.
class forgetful_device final : public device {
public:
  const device_info& info() const override { return info_; }
  void install(bound_plan_ptr, device_index) override {}
  void retire(uint64_t) override {}
  void submit(chunk_work, chunk_done done) override { done({}); }
  void fetch(const device_tensor&, const fetch_done& done) override {
    const auto bytes = std::make_shared<std::vector<float>>(100'000);
    last = bytes;
    done({.value = tensor(dtype::float32, {100'000}, bytes, bytes->data())});
  }
  device_tensor put(const tensor& value) override { return make_host_resident(value, info_.name); }
  device_stats stats() const override { return {}; }

  std::weak_ptr<std::vector<float>> last; // the value that was fetched last, while it is in use

private:
  const device_info info_{.name = "f", .kind = device_kind::null, .memory_bytes = int64_t{1} << 40};
};

/// A device whose chunks end as soon as their execution is stopped, not before.
class patient_device final : public device {
public:
  const device_info& info() const override { return info_; }
  void install(bound_plan_ptr, device_index) override {}
  void retire(uint64_t) override {}
  void submit(chunk_work work, chunk_done done) override {
    ++begun;
    for (const auto end = std::chrono::steady_clock::now() + limit;
         !work.stop->load() && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    done({.code = errc::cancelled, .message = "stopped"});
  }
  void fetch(const device_tensor&, const fetch_done&) override {}
  device_tensor put(const tensor& value) override { return make_host_resident(value, info_.name); }
  device_stats stats() const override { return {}; }

  std::atomic<int> begun = 0; // chunks

private:
  const device_info info_{.name = "p", .kind = device_kind::null, .memory_bytes = int64_t{1} << 40};
};

/// How `two` reaches `one`.
remote::service_options calls(far_host& one) {
  return {.connect_peer = [&one](const std::string& address) {
    CHECK(address == one.address());
    remote::frame answer;
    return one.open(remote::encode(remote::hello{.role = remote::role::peer}), answer);
  }};
}

} // namespace

TEST_CASE("a value goes from host to host, and not through the session", "[remote][D3]") {
  const shape dims{300, 1000}; // 1.2 MB
  far_host one(cpus(1), {}, "one");
  far_host two(cpus(1), calls(one), "two");
  const auto offers = std::make_shared<remote::outbox>();
  const auto to_one = one.connect(offers), to_two = two.connect(offers);
  const two_devices far(remote::make_remote_device(to_one, 0), remote::make_remote_device(to_two, 0), dims);
  const auto& [first, second, bound] = far;
  const tensor in = ramp(dims);
  chunk_work begin = far_work(*bound, 0, {std::make_shared<moved_value>(in)}, false);
  const value_ref between = begin.downloads[0];
  REQUIRE(get(run(*first, std::move(begin))).ok());
  CHECK(between->away());
  CHECK(between->dims() == dims);
  const int64_t said_to_two = two.link(0).sent(0);
  chunk_work end = far_work(*bound, 1, {between}, true);
  const value_ref last = end.downloads[0];
  REQUIRE(get(run(*second, std::move(end))).ok());
  for (int64_t i = 0; i < in.size(); ++i)
    REQUIRE(last->host().values<float>()[i] == -std::max(in.values<float>()[i], 0.f));
  CHECK(two.link(0).sent(0) - said_to_two < 20000); // the session has sent none of the bytes
}

TEST_CASE("a session that ends while its chunk begins on another thread begins no more", "[remote][D2][D5]") {
  const shape dims{300, 1000};
  const auto patient = std::make_shared<patient_device>();
  auto one = std::make_unique<far_host>(cpus(1), remote::service_options{}, "one");
  far_host two({patient}, calls(*one), "two");
  const auto offers = std::make_shared<remote::outbox>();
  const two_devices far(remote::make_remote_device(one->connect(offers), 0),
                        remote::make_remote_device(two.connect(offers), 0), dims);
  const auto& [first, second, bound] = far;
  chunk_work begin = far_work(*bound, 0, {std::make_shared<moved_value>(ramp(dims))}, false);
  const value_ref between = begin.downloads[0];
  REQUIRE(get(run(*first, std::move(begin))).ok());
  auto pulled = run(*second, far_work(*bound, 1, {between}, true)); // begins on the thread of the link to `one`
  while (patient->begun == 0)
    std::this_thread::sleep_for(1ms);
  const int64_t said = two.link(0).sent(0);
  chunk_work later = far_work(*bound, 1, {std::make_shared<moved_value>(ramp(dims))}, true);
  later.execution = 2;
  later.slot = 1;
  auto waiting = run(*second, std::move(later));
  while (two.link(0).sent(0) - said < bytes_of(dtype::float32, volume(dims)))
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms); // all that it needs has come: it could begin
  two.link(0).cut();
  CHECK(get(std::move(pulled)).code == errc::device_lost);
  CHECK(get(std::move(waiting)).code == errc::device_lost);
  one = nullptr; // its link's thread has ended
  CHECK(patient->begun == 1);
}

TEST_CASE("devices of one host share the values that they make", "[remote][D3]") {
  const shape dims{300, 1000};
  far_host host(cpus(2));
  const auto client = host.connect();
  const two_devices far(remote::make_remote_device(client, 0), remote::make_remote_device(client, 1), dims);
  const auto& [first, second, bound] = far;
  const tensor in = ramp(dims);
  chunk_work begin = far_work(*bound, 0, {std::make_shared<moved_value>(in)}, false);
  const value_ref between = begin.downloads[0];
  REQUIRE(get(run(*first, std::move(begin))).ok());
  const int64_t said = host.link(0).sent(1);
  chunk_work end = far_work(*bound, 1, {between}, false);
  REQUIRE(get(run(*second, std::move(end))).ok());
  CHECK(host.link(0).sent(1) - said < 20000);
}

TEST_CASE("a link that ends fails the runs in flight, naming the host", "[remote][D5]") {
  auto stuck = std::make_shared<fault_device>(make_cpu_device("cpu"), fault_script{.stall_at = 0});
  far_host host({stuck});
  const auto client = host.connect();
  const auto far = remote::make_remote_device(client, 0);
  const auto bound = bind_segment(two_steps({far->info()}, {4}), 0, {});
  far->install(bound, 0);
  auto ended = run(*far, far_work(*bound, 0, {std::make_shared<moved_value>(ramp({4}))}, true));
  std::promise<std::string> told;
  client->on_end([&](const std::string& why) { told.set_value(why); });
  host.link(0).cut();
  const chunk_result result = get(std::move(ended));
  CHECK(result.code == errc::device_lost);
  CHECK(result.message.find("host 'far' is gone") != std::string::npos);
  auto why = told.get_future();
  REQUIRE(why.wait_for(limit) == std::future_status::ready);
  CHECK(why.get().find("far") != std::string::npos);
  CHECK(get(run(*far, far_work(*bound, 0, {std::make_shared<moved_value>(ramp({4}))}, true))).code ==
        errc::device_lost);
  CHECK_THROWS_AS(far->install(bound, 0), error);
}

TEST_CASE("sessions with the same numbers do not meet on a worker", "[remote][D2]") {
  std::set<execution_id> seen; // by the device, of which a worker asks one thing at a time
  far_host host({std::make_shared<test::tapped_device>(make_cpu_device("cpu0"),
                                                       [&](device& inner, chunk_work work, chunk_done done) {
                                                         seen.insert(work.execution);
                                                         inner.submit(std::move(work), std::move(done));
                                                       })});
  std::vector<std::shared_ptr<remote::host_client>> clients;
  std::vector<std::unique_ptr<device>> devices;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(host.connect());
    devices.push_back(remote::make_remote_device(clients.back(), 0));
  }
  const auto bound = bind_segment(two_steps({devices[0]->info()}, {64}), 0, {});
  for (const auto& d : devices)
    d->install(bound, 0);
  const tensor in = ramp({64});
  for (int round = 0; round < 20; ++round) {
    std::vector<std::future<chunk_result>> ended;
    std::vector<value_ref> made;
    for (const auto& d : devices) {
      chunk_work work = far_work(*bound, 0, {std::make_shared<moved_value>(in)}, true);
      work.execution = static_cast<execution_id>(round);
      made.push_back(work.downloads[0]);
      ended.push_back(run(*d, std::move(work)));
    }
    for (size_t i = 0; i < ended.size(); ++i) {
      REQUIRE(get(std::move(ended[i])).ok());
      CHECK(same_floats(made[0]->host(), made[i]->host()));
    }
  }
  CHECK(host.service().sessions() == 4);
  CHECK(seen.size() == 4 * 20);
}

TEST_CASE("the end of a session releases all that it had on the worker", "[remote][D2]") {
  std::shared_ptr<device> cpu = make_cpu_device("cpu");
  far_host host({cpu});
  for (int i = 0; i < 5; ++i) {
    const auto client = host.connect();
    const auto far = remote::make_remote_device(client, 0);
    const auto bound = bind_segment(two_steps({far->info()}, {64}), 0, {});
    far->install(bound, 0);
    CHECK(far->stats().installed_plans == 1);
    if (i % 2 == 0)
      host.link(static_cast<size_t>(i)).cut();
    else
      client->close();
    for (auto end = std::chrono::steady_clock::now() + limit; host.service().sessions() > 0;) {
      REQUIRE(std::chrono::steady_clock::now() < end);
      std::this_thread::sleep_for(1ms);
    }
  }
  CHECK(cpu->stats().installed_plans == 0);
}

TEST_CASE("a worker forgets a fetched value when the session has it", "[remote][D2]") {
  const auto near = std::make_shared<forgetful_device>();
  far_host host({near});
  const auto far = remote::make_remote_device(host.connect(), 0);
  std::promise<fetch_result> fetched;
  auto value = fetched.get_future();
  far->fetch(far->put(ramp({100'000})), [&](fetch_result r) { fetched.set_value(std::move(r)); });
  REQUIRE(value.wait_for(limit) == std::future_status::ready);
  CHECK(value.get().value.size() == 100'000);
  for (const auto end = std::chrono::steady_clock::now() + limit; !near->last.expired(); std::this_thread::yield())
    REQUIRE(std::chrono::steady_clock::now() < end);
}

TEST_CASE("a worker refuses other versions and more sessions than its owner allows", "[remote][D2]") {
  far_host host(cpus(1), {.version = "1.2", .sessions = 1});
  remote::frame answer;
  const auto open = [&](remote::hello who) { return host.open(remote::encode(who), answer); };
  CHECK_THROWS_WITH(open({.version = "1.1"}), Catch::Contains("troupe 1.2") && Catch::Contains("troupe 1.1"));
  CHECK_THROWS_AS(open({.protocol = remote::protocol + 1, .version = "1.2"}), error);
  const remote::link_ptr link = open({.version = "1.2"});
  CHECK_THROWS_WITH(open({.version = "1.2"}), Catch::Contains("1 sessions"));
  CHECK_THROWS_AS(host.open({1, 2, 3}, answer), error);
}

TEST_CASE("a stopped execution answers the chunks that wait", "[remote][A6]") {
  far_host host(cpus(1));
  const auto client = host.connect();
  const auto far = remote::make_remote_device(client, 0);
  const auto bound = bind_segment(two_steps({far->info()}, {200000}), 0, {});
  far->install(bound, 0);
  host.link(0).set_conditions({.bytes_per_second = 1000}); // the input does not arrive
  chunk_work work = far_work(*bound, 0, {std::make_shared<moved_value>(ramp({200000}))}, true);
  work.execution = 7;
  auto ended = run(*far, std::move(work));
  host.link(0).set_conditions({});
  far->stop(7);
  CHECK_FALSE(get(std::move(ended)).ok());
}
