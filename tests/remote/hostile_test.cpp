// Members of the cluster that send messages that no session sends: the worker ends their links, and serves the others.
#include "cpu/cpu_device.hpp"
#include "support/catch.hpp"
#include "support/far_device.hpp"
#include "support/graph_builder.hpp"

#include <future>
#include <random>

using namespace troupe;
using namespace std::chrono_literals;
using test::far_host;
using test::graph_builder;

namespace {

/// Passes frames on and remembers those that were sent.
class recorded_link final : public remote::link {
public:
  explicit recorded_link(remote::link_ptr inner) : inner_(std::move(inner)) {}
  void send(remote::frame f) override {
    {
      const std::lock_guard lock(mutex_);
      sent_.push_back(f);
    }
    inner_->send(std::move(f));
  }
  void receive(remote::link_handler handler) override { inner_->receive(std::move(handler)); }
  void close() override { inner_->close(); }
  std::vector<remote::frame> sent() const {
    const std::lock_guard lock(mutex_);
    return sent_;
  }

private:
  const remote::link_ptr inner_;
  mutable std::mutex mutex_;
  std::vector<remote::frame> sent_;
};

/// A session that runs the same model again and again.
class honest_session {
public:
  honest_session(remote::link_ptr link, const remote::frame& answer, std::string address)
      : client_(make(std::move(link), answer, std::move(address))), far_(remote::make_remote_device(client_, 0)) {
    graph_builder n;
    const value_id x = n.input({100, 300});
    const auto p = make_plan(n.program({n.op("Neg", {n.op("Relu", {x})})}), {far_->info()}, {});
    bound_ = bind_segment(p, 0, {});
    far_->install(bound_, 0);
    in_ = tensor(dtype::float32, {100, 300});
    std::fill_n(in_.mutable_data<float>(), in_.size(), 2.f);
  }

  /// Returns whether the result is right.
  bool run() {
    chunk_work work{.bound_plan = bound_->id, .chunk = 0, .execution = ++executions_};
    work.uploads.push_back(std::make_shared<moved_value>(in_));
    work.downloads.push_back(std::make_shared<moved_value>());
    const value_ref out = work.downloads[0];
    auto ended = std::make_shared<std::promise<chunk_result>>();
    far_->submit(std::move(work), [ended](chunk_result r) { ended->set_value(std::move(r)); });
    auto result = ended->get_future();
    return result.wait_for(20s) == std::future_status::ready && result.get().ok() &&
           out->host().values<float>()[777] == -2.f;
  }
  void leave() { far_->retire(bound_->id); }

private:
  static std::shared_ptr<remote::host_client> make(remote::link_ptr link, const remote::frame& answer,
                                                   std::string address) {
    remote::message said = remote::decode(answer);
    return remote::host_client::make(std::move(link), "far", std::move(address),
                                     std::move(std::get<remote::welcome>(said)), std::make_shared<remote::outbox>());
  }

  std::shared_ptr<remote::host_client> client_;
  std::unique_ptr<device> far_;
  bound_plan_ptr bound_;
  tensor in_;
  execution_id executions_ = 0;
};

remote::frame mutated(remote::frame f, std::mt19937_64& random) {
  for (auto count = 1 + random() % 4; count > 0 && !f.empty(); --count)
    switch (random() % 4) {
      case 0: f[random() % f.size()] = static_cast<uint8_t>(random()); break;
      case 1: f.resize(random() % f.size()); break;
      case 2:
        f.insert(f.begin() + static_cast<std::ptrdiff_t>(random() % f.size()), static_cast<uint8_t>(random()));
        break;
      default: f[random() % std::min<size_t>(f.size(), 16)] ^= static_cast<uint8_t>(1u << random() % 8);
    }
  return f;
}

remote::frame noise(std::mt19937_64& random) {
  remote::frame f(random() % 300);
  for (uint8_t& byte : f)
    byte = static_cast<uint8_t>(random());
  return f;
}

} // namespace

TEST_CASE("a worker serves an honest session while others send it nonsense", "[remote][D2][slow]") {
  far_host host({make_cpu_device("cpu")});
  remote::frame answer;
  const remote::frame hello = remote::encode(remote::hello{.name = "honest"});
  const auto record = std::make_shared<recorded_link>(host.open(hello, answer));
  honest_session honest(record, answer, host.address());
  REQUIRE(honest.run());
  std::vector<remote::frame> seen = record->sent();
  std::mt19937_64 random(92);
  for (int attack = 0; attack < 500; ++attack) {
    remote::frame ignored;
    const remote::link_ptr link = host.open(hello, ignored);
    for (int i = 0; i < 40; ++i) // a session as it was recorded, until something in it is wrong
      link->send(random() % 2 ? noise(random) : mutated(seen[random() % seen.size()], random));
    for (const remote::frame& f : seen)
      link->send(random() % 8 ? f : mutated(f, random));
    if (attack % 50 == 0)
      REQUIRE(honest.run());
    REQUIRE(host.drop_newest());
  }
  REQUIRE(honest.run());
}

TEST_CASE("malformed messages are refused before anything is allocated", "[remote][D2]") {
  std::mt19937_64 random(7);
  const std::vector<remote::message> said = {
      remote::hello{.version = "1", .name = "x"},
      remote::run_chunk{.uploads = {{.type = dtype::float32, .dims = {2}, .bytes = std::vector<uint8_t>(8)}},
                        .downloads = {{.key = {1, 2}}}},
      remote::install{.binding = {1, 2, 3}},
      remote::release{{{1, 2}, {3, 4}}},
      remote::chunk_made{.result = {.message = "x"}, .downloads = {{.type = dtype::string, .dims = {1}}}},
      remote::piece_request{1, {2, 3}, 4, 5},
  };
  for (const remote::message& m : said) {
    const remote::frame f = remote::encode(m);
    CHECK(remote::encode(remote::decode(f)) == f);
    for (size_t length = 0; length < f.size(); ++length)
      CHECK_THROWS_AS(remote::decode(std::span(f).first(length)), error);
    for (int i = 0; i < 3000; ++i)
      try {
        remote::decode(mutated(f, random));
      } catch (const error&) {
      }
  }
}
