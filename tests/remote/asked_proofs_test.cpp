// Workers that ask for proofs of weights, honestly or not: no question keeps a link from its work.
#include "cpu/cpu_device.hpp"
#include "device/tells_progress.hpp"
#include "remote/remote_device.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"
#include "support/link_pair.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <future>

using namespace troupe;
using namespace troupe::remote;
using namespace std::chrono_literals;
using test::graph_builder;

namespace {

constexpr auto limit = 60s;          // a hang fails a test
constexpr int64_t elements = 20'000; // too many for a plan

/// Takes long to read, and hardly any memory: pages that nothing has been written to.
tensor long_weight() {
  constexpr int64_t many = int64_t{1} << 28;
  const std::shared_ptr<void> zeros(std::calloc(many, sizeof(float)), &std::free);
  REQUIRE(zeros);
  return {dtype::float32, {many}, zeros, zeros.get()};
}

tensor weight_of(float value) {
  tensor t(dtype::float32, {elements});
  std::fill_n(t.mutable_data<float>(), elements, value);
  return t;
}

/// Multiplies by weights, one after the other.
std::shared_ptr<const plan> plan_with(const std::vector<tensor>& weights) {
  graph_builder n;
  std::vector<value_id> products;
  for (const tensor& w : weights)
    products.push_back(
        n.op("Mul", {n.input(to_symbolic(w.dims())), n.constant(fmt::format("w{}", products.size()), w)}));
  device_info far = make_cpu_device("cpu")->info();
  return make_plan(n.program(products), {far}, {});
}

/// A worker that sends the messages that a test gives it, and answers nothing but measurements.
class spoken_worker {
public:
  spoken_worker() {
    const link_ptr far = pair.end(1);
    far->receive({.on_frame = [this](const frame& f) { take(f); }, .on_closed = [](const std::string&) {}});
    device_info info = make_cpu_device("cpu")->info();
    client = host_client::make(pair.end(0), "far", "far:1", {.version = "", .devices = {info}}, offers);
    client->on_end([this](const std::string& why) { ended_.set_value(why); });
  }
  ~spoken_worker() { pair.stop(); }
  spoken_worker(const spoken_worker&) = delete;
  spoken_worker& operator=(const spoken_worker&) = delete;

  void say(const message& m) { pair.end(1)->send(encode(m)); }
  /// Returns the next message of a kind.
  template <class M>
  M hear() {
    std::unique_lock lock(mutex_);
    for (;;) {
      while (!heard_.empty()) {
        const message m = std::move(heard_.front());
        heard_.pop_front();
        if (const auto* found = std::get_if<M>(&m))
          return *found;
      }
      REQUIRE(changed_.wait_for(lock, limit) == std::cv_status::no_timeout);
    }
  }
  std::string why_ended() {
    auto told = ended_.get_future();
    REQUIRE(told.wait_for(limit) == std::future_status::ready);
    return told.get();
  }

  const std::shared_ptr<outbox> offers = std::make_shared<outbox>();
  test::link_pair pair;
  std::shared_ptr<host_client> client;

private:
  void take(const frame& f) {
    message m = decode(f);
    if (const auto* asked = std::get_if<ping>(&m))
      return say(pong{asked->request, 0, std::vector<uint8_t>(asked->answer_bytes)});
    if (std::holds_alternative<piece>(m))
      return; // its bytes are the frame's
    const std::lock_guard lock(mutex_);
    heard_.push_back(std::move(m));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<message> heard_;
  std::promise<std::string> ended_;
};

template <class Condition>
void await(Condition&& holds) {
  for (const auto end = std::chrono::steady_clock::now() + limit; !holds(); std::this_thread::yield())
    REQUIRE(std::chrono::steady_clock::now() < end);
}

} // namespace

TEST_CASE("a plan whose weights are being read keeps neither proofs nor other plans waiting", "[remote][C11]") {
  spoken_worker far;
  const tensor w = weight_of(1);
  const hash128 name = content_hash(w), challenge = new_key();
  const auto known = plan_with({w});
  far.client->offer(known);
  const auto large = plan_with({weight_of(2), long_weight()}), small = plan_with({weight_of(4)});
  const piece_source& on_offer = far.offers->offers();
  const size_t before = on_offer.size();
  auto offered = std::async(std::launch::async, [&] { return far.client->offer(large); });
  await([&] { return on_offer.size() == before + 1; }); // the large weight is being read
  SECTION("a proof") {
    far.say(prove_weights{challenge, {name}});
    CHECK(far.hear<weight_proofs>().proofs == std::vector{content_proof(challenge, to_blob(w))});
    CHECK(on_offer.size() == before + 1);
  }
  SECTION("another plan") {
    far.client->offer(small);
    CHECK(on_offer.size() == before + 3);
  }
  SECTION("the same plan is waited for") {
    CHECK(far.client->offer(large).id == offered.get().id);
  }
}

TEST_CASE("a plan is offered once, and as long as it lives", "[remote]") {
  outbox offers;
  auto p = plan_with({weight_of(1)}), q = plan_with({weight_of(1), weight_of(2)});
  const offered_plan first = offers.offer(p);
  CHECK(first.leaves->size() == 1);
  CHECK(offers.offer(p).id == first.id);
  CHECK(offers.offers().size() == 2);
  p = nullptr;
  CHECK(offers.offer(q).id != first.id);
  CHECK(offers.offers().size() == 3);
}

TEST_CASE("a worker may ask for proofs of each weight once, one question at a time", "[remote][D2]") {
  spoken_worker far;
  const tensor w = weight_of(1), large = long_weight();
  const hash128 name = content_hash(w), other = new_key();
  const auto p = plan_with({w, large});
  far.client->offer(p);
  SECTION("one weight twice") {
    far.say(prove_weights{new_key(), {name, name}});
    CHECK_THAT(far.why_ended(), Catch::Contains("of one twice"));
  }
  SECTION("more weights than it was offered") {
    far.say(prove_weights{new_key(), {name, other, new_key()}});
    CHECK_THAT(far.why_ended(), Catch::Contains("proofs of 3 weights are wanted, of 2 on offer"));
  }
  SECTION("two questions at once") {
    const hash128 large_name = content_hash(large);
    far.pair.hold();
    far.say(prove_weights{new_key(), {large_name}});
    far.say(prove_weights{new_key(), {name}});
    far.pair.release();
    CHECK_THAT(far.why_ended(), Catch::Contains("before the last ones were given"));
  }
  SECTION("one question after the other") {
    for (int i = 0; i < 3; ++i) {
      const hash128 challenge = new_key();
      far.say(prove_weights{challenge, {other, name}});
      const auto told = far.hear<weight_proofs>();
      CHECK(told.proofs == std::vector{hash128{}, content_proof(challenge, to_blob(w))});
    }
  }
}

TEST_CASE("only bytes of weights that have not come before are progress", "[remote][C11]") {
  spoken_worker far;
  const auto device = make_remote_device(far.client, 0);
  std::atomic<int> progress = 0;
  dynamic_cast<tells_progress&>(*device).on_progress([&] { ++progress; });
  for (int i = 0; i < 5; ++i) {
    far.say(loading{0, 1, 2});
    far.say(loading{0, 0, 2});
    far.say(loading{0, 0, 0});
  }
  SECTION("whatever a worker says in between") {
    far.say(loading{0, 2, 2});
    await([&] { return far.client->news().loads().came == 2; });
    CHECK(progress == 2);
  }
  SECTION("an install that nothing waits for ends the link") {
    far.say(installed{.device = 0, .bound_plan = 1});
    CHECK_THAT(far.why_ended(), Catch::Contains("when nothing waits for it"));
  }
}
