// Weights that workers pass on to each other, over links in memory: which bytes cross which link, and peers that fail.
#include "cpu/cpu_device.hpp"
#include "graph/weight.hpp"
#include "support/catch.hpp"
#include "support/far_device.hpp"
#include "support/graph_builder.hpp"
#include "support/run_graph.hpp"

#include <future>

using namespace troupe;
using namespace std::chrono_literals;
using namespace troupe::test;

namespace {

constexpr auto limit = 20s; // a hang fails a test

constexpr int weight_count = 3;
const shape weight_dims{100, 1000};
constexpr int64_t weight_bytes = 400'000, all_bytes = weight_count * weight_bytes;
/// Bytes that a link carries besides the weights, at most.
constexpr int64_t talk = 60'000;

template <class Condition>
void await(Condition&& holds) {
  for (const auto end = std::chrono::steady_clock::now() + limit; !holds(); std::this_thread::sleep_for(1ms))
    REQUIRE(std::chrono::steady_clock::now() < end);
}

/// Changes a byte of each long frame that arrives.
class damaging_link final : public remote::link {
public:
  explicit damaging_link(remote::link_ptr inner) : inner_(std::move(inner)) {}
  void send(remote::frame f) override { inner_->send(std::move(f)); }
  void receive(remote::link_handler handler) override {
    handler.on_frame = [to = handler.on_frame](remote::frame f) {
      if (f.size() > 1000)
        f.back() ^= 1;
      to(f);
    };
    inner_->receive(std::move(handler));
  }
  void close() override { inner_->close(); }

private:
  const remote::link_ptr inner_;
};

/// Its other end gets nothing.
class mute_link final : public remote::link {
public:
  explicit mute_link(remote::link_ptr inner) : inner_(std::move(inner)) {}
  void send(remote::frame) override {}
  void receive(remote::link_handler handler) override { inner_->receive(std::move(handler)); }
  void close() override { inner_->close(); }

private:
  const remote::link_ptr inner_;
};

/// Workers, each with a CPU device, and a session with a plan whose nodes, one a worker, all read the same weights.
class cluster {
public:
  explicit cluster(size_t count) {
    for (size_t i = 0; i < count; ++i)
      hosts.push_back(std::make_unique<far_host>(std::vector<std::shared_ptr<device>>{make_cpu_device("cpu")},
                                                 options_of(i), fmt::format("w{}", i)));
    std::vector<device_info> infos;
    for (size_t i = 0; i < count; ++i) {
      clients.push_back(hosts[i]->connect(offers));
      devices.push_back(remote::make_remote_device(clients[i], 0));
      infos.push_back(devices[i]->info());
      said_before_.push_back(hosts[i]->link(0).sent(0));
    }
    bound = bind(std::move(infos));
  }

  /// Returns an equal plan.
  bound_plan_ptr bind_again() {
    const std::vector<device_info> infos = bound->source->devices;
    bound = nullptr;
    return bind(infos);
  }

  void install(size_t i) { devices[i]->install(bound, static_cast<device_index>(i)); }
  std::future<void> install_later(size_t i) {
    return std::async(std::launch::async, [this, i] { install(i); });
  }
  /// Returns how many bytes the session's process has sent to worker i since the plan was made.
  int64_t sent_to(size_t i) const { return hosts[i]->link(0).sent(0) - said_before_[i]; }
  int64_t sent() const {
    int64_t all = 0;
    for (size_t i = 0; i < hosts.size(); ++i)
      all += sent_to(i);
    return all;
  }
  /// Whether a device computes the result that belongs to the weights.
  bool is_right(size_t i) {
    const chunk& c = bound->source->chunks.at(i);
    REQUIRE(c.device == i);
    tensor x(dtype::float32, weight_dims);
    std::fill_n(x.mutable_data<float>(), x.size(), 1.f);
    chunk_work work{.bound_plan = bound->id, .chunk = static_cast<chunk_id>(i)};
    work.uploads.push_back(std::make_shared<moved_value>(x));
    work.downloads.push_back(std::make_shared<moved_value>());
    const value_ref made = work.downloads[0];
    auto ended = std::make_shared<std::promise<chunk_result>>();
    devices[i]->submit(std::move(work), [ended](chunk_result r) { ended->set_value(std::move(r)); });
    auto result = ended->get_future();
    if (result.wait_for(limit) != std::future_status::ready || !result.get().ok())
      return false;
    const auto expected = values_of(run_graph(*sum_, {x})[0]), got = values_of(made->host());
    return std::equal(got.begin(), got.end(), expected.begin(), expected.end());
  }
  /// Returns the workers' complaints of peers.
  std::vector<std::string> complaints() const {
    const std::lock_guard lock(mutex_);
    return complaints_;
  }

  /// How worker i reaches another.
  std::function<remote::link_ptr(size_t from, far_host& to)> connect_peer = [](size_t, far_host& to) {
    return open_peer(to);
  };
  static remote::link_ptr open_peer(far_host& to, const link_conditions& conditions = {}) {
    remote::frame answer;
    return to.open(remote::encode(remote::hello{.role = remote::role::peer}), answer, conditions);
  }

  std::shared_ptr<remote::outbox> offers = std::make_shared<remote::outbox>();
  std::vector<std::unique_ptr<far_host>> hosts;
  std::vector<std::shared_ptr<remote::host_client>> clients;
  std::vector<std::unique_ptr<device>> devices;
  bound_plan_ptr bound;

private:
  remote::service_options options_of(size_t i) {
    return {.connect_peer =
                [this, i](const std::string& address) {
                  for (const auto& h : hosts)
                    if (h->address() == address)
                      return connect_peer(i, *h);
                  throw error(errc::io, "nobody is there");
                },
            .peer_patience = 500ms,
            .log =
                [this](const std::string& event, const remote::service_options::facts& facts) {
                  const std::lock_guard lock(mutex_);
                  if (event == "peer_failed")
                    complaints_.push_back(facts.at(1).second + ": " + facts.at(2).second);
                }};
  }
  bound_plan_ptr bind(std::vector<device_info> infos) {
    const auto add_sum = [](graph_builder& n, value_id x, const std::vector<value_id>& weights) {
      std::vector<value_id> terms{x};
      terms.insert(terms.end(), weights.begin(), weights.end());
      return n.op("Sum", terms);
    };
    const auto weights_in = [](graph_builder& n) {
      std::vector<value_id> weights;
      for (int i = 0; i < weight_count; ++i)
        weights.push_back(n.constant(fmt::format("w{}", i), random_tensor(weight_dims, static_cast<uint32_t>(i))));
      return weights;
    };
    graph_builder n, one;
    sum_ = one.program({add_sum(one, one.input(to_symbolic(weight_dims)), weights_in(one))});
    value_id v = n.input(to_symbolic(weight_dims));
    const std::vector<value_id> weights = weights_in(n);
    for (size_t i = 0; i < infos.size(); ++i)
      v = add_sum(n, v, weights);
    return bind_segment(make_plan(n.program({v}), std::move(infos), {placement_policy::round_robin}), 0, {});
  }

  std::vector<int64_t> said_before_;
  std::shared_ptr<const graph> sum_;
  mutable std::mutex mutex_;
  std::vector<std::string> complaints_;
};

/// Remembers the worker's messages.
class heard_link final : public remote::link {
public:
  explicit heard_link(remote::link_ptr inner) : inner_(std::move(inner)) {}
  void send(remote::frame f) override { inner_->send(std::move(f)); }
  void receive(remote::link_handler handler) override {
    handler.on_frame = [this, to = handler.on_frame](const remote::frame& f) {
      remote::message m = remote::decode(f);
      if (const auto* weights = std::get_if<remote::have_weights>(&m)) {
        const std::lock_guard lock(mutex_);
        for (const remote::offered_weight& w : weights->weights)
          keys_.push_back(w.key);
      }
      to(f);
    };
    inner_->receive(std::move(handler));
  }
  void close() override { inner_->close(); }
  std::vector<hash128> keys() const {
    const std::lock_guard lock(mutex_);
    return keys_;
  }

private:
  const remote::link_ptr inner_;
  mutable std::mutex mutex_;
  std::vector<hash128> keys_;
};

/// Returns whether a worker gives a peer bytes under a key.
bool gives(far_host& host, const hash128& key) {
  const remote::link_ptr link = cluster::open_peer(host);
  const auto answer = std::make_shared<std::promise<bool>>();
  link->receive({.on_frame =
                     [answer](const remote::frame& f) {
                       const remote::message m = remote::decode(f);
                       answer->set_value(!std::get<remote::piece>(m).gone);
                     },
                 .on_closed = [](const std::string&) {}});
  link->send(remote::encode(remote::piece_request{.request = 1, .key = key, .offset = 0, .bytes = 16}));
  auto given = answer->get_future();
  REQUIRE(given.wait_for(limit) == std::future_status::ready);
  return given.get();
}

} // namespace

TEST_CASE("a worker gets weights from another that has them", "[remote][D3]") {
  cluster c(2);
  c.install(0);
  CHECK(c.sent_to(0) >= all_bytes);
  CHECK(c.sent_to(0) < all_bytes + talk);
  c.install(1);
  CHECK(c.sent_to(1) < talk);
  CHECK(c.hosts[0]->link(1).sent(1) >= all_bytes); // the link between them
  CHECK(c.is_right(0));
  CHECK(c.is_right(1));
  CHECK(c.complaints().empty());
}

TEST_CASE("weights that several workers need at once leave the session's process once", "[remote][D3]") {
  for (int round = 0; round < 5; ++round) {
    cluster c(3);
    std::vector<std::future<void>> installed;
    for (size_t i = 0; i < 3; ++i)
      installed.push_back(c.install_later(i));
    for (auto& each : installed)
      each.get();
    CHECK(c.sent() >= all_bytes);
    CHECK(c.sent() < all_bytes + 3 * talk);
    for (size_t i = 0; i < 3; ++i)
      CHECK(c.is_right(i));
  }
}

TEST_CASE("a worker passes on the weights of a plan that is gone", "[remote][D3]") {
  cluster c(2);
  c.install(0);
  c.devices[0]->retire(c.bound->id);
  const std::weak_ptr<const plan> first = c.bound->source;
  c.bound = c.bind_again();
  CHECK(first.expired());
  c.install(1);
  CHECK(c.sent_to(1) < talk);
  CHECK(c.is_right(1));
}

TEST_CASE("weights come from the session's process if a peer fails", "[remote][D5]") {
  cluster c(2);
  c.install(0);
  size_t calls = 0;
  int64_t least = all_bytes;
  std::string complaint;
  SECTION("it cannot be reached, and is called once") {
    c.connect_peer = [&](size_t, far_host&) -> remote::link_ptr {
      ++calls;
      throw error(errc::io, "there is no way");
    };
    complaint = "there is no way";
  }
  SECTION("it is lost halfway") {
    c.connect_peer = [&](size_t, far_host& to) {
      ++calls;
      return cluster::open_peer(to, {.cut_after = weight_bytes + weight_bytes / 2});
    };
    least = all_bytes - weight_bytes; // the first was whole
    complaint = "the connection was lost";
  }
  SECTION("it sends something else") {
    c.connect_peer = [&](size_t, far_host& to) {
      ++calls;
      return std::make_shared<damaging_link>(cluster::open_peer(to));
    };
    complaint = "does not have the content";
  }
  SECTION("it answers nothing") {
    c.connect_peer = [&](size_t, far_host& to) {
      ++calls;
      return std::make_shared<mute_link>(cluster::open_peer(to));
    };
    complaint = "nothing has come from it for 0.5 s";
  }
  c.install(1);
  CHECK(calls == 1);
  CHECK(c.sent_to(1) >= least);
  CHECK(c.sent_to(1) < least + talk);
  CHECK(c.is_right(1));
  const auto said = c.complaints();
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], Catch::StartsWith("w0:4242: ") && Catch::Contains(complaint));
}

TEST_CASE("a peer that no longer has a weight is asked for the others", "[remote][D5]") {
  cluster c(2);
  far_host stranger({make_cpu_device("cpu")});
  c.install(0);
  int calls = 0;
  c.connect_peer = [&](size_t, far_host&) {
    ++calls;
    return cluster::open_peer(stranger); // knows none of the keys
  };
  c.install(1);
  CHECK(calls == 1);
  CHECK(c.sent_to(1) >= all_bytes);
  CHECK(c.is_right(1));
  CHECK(c.complaints().size() == weight_count);
}

TEST_CASE("a worker that waits for one that is lost gets its weights elsewhere", "[remote][D5]") {
  cluster c(2);
  c.hosts[0]->link(0).set_conditions({.bytes_per_second = 200'000});
  auto lost = c.install_later(0);
  await([&] { return c.sent_to(0) > talk; }); // the first weight is on its way there
  auto other = c.install_later(1);
  SECTION("the worker is lost") {
    c.hosts[0]->link(0).cut();
    CHECK_THROWS_AS(lost.get(), error);
    other.get();
    CHECK(c.is_right(1));
  }
  SECTION("the one that waits leaves") {
    c.clients[1]->close();
    CHECK_THROWS_AS(other.get(), error);
    await([&] { return c.hosts[1]->service().sessions() == 0; });
    c.hosts[0]->link(0).set_conditions({});
    lost.get();
    CHECK(c.is_right(0));
  }
}

TEST_CASE("weights are offered to peers as long as the session has their plan", "[remote][D2]") {
  cluster c(1);
  remote::frame answer;
  const auto heard = std::make_shared<heard_link>(c.hosts[0]->open(remote::encode(remote::hello{}), answer));
  remote::message greeting = remote::decode(answer);
  const auto client = remote::host_client::make(heard, "w0", "w0:4242", std::get<remote::welcome>(greeting), c.offers);
  const auto far = remote::make_remote_device(client, 0);
  graph_builder n;
  const value_id w = n.constant("w", random_tensor(weight_dims, 9));
  const auto program = n.program({n.op("Add", {n.input(to_symbolic(weight_dims)), w})});
  const auto install = [&] {
    const auto bound = bind_segment(make_plan(program, {far->info()}, {}), 0, {});
    far->install(bound, 0);
    far->retire(bound->id);
    return bound->source;
  };
  auto first = install();
  REQUIRE(heard->keys().size() == 1);
  CHECK(gives(*c.hosts[0], heard->keys()[0]));
  first = nullptr;
  const auto second = install(); // the worker hears that the first is gone
  REQUIRE(heard->keys().size() == 2);
  CHECK(gives(*c.hosts[0], heard->keys()[1]));
  await([&] { return !gives(*c.hosts[0], heard->keys()[0]); });
  CHECK_FALSE(gives(*c.hosts[0], content_hash(random_tensor(weight_dims, 9)))); // a key that the worker was not told
  client->close();
  await([&] { return !gives(*c.hosts[0], heard->keys()[1]); });
}
