// Links between workers are limited, and any session may name any address: that closes no link that is in use.
#include "remote/peers.hpp"
#include "remote/values.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <map>

using namespace troupe;
using namespace troupe::remote;
using namespace std::chrono_literals;

namespace {

constexpr int most_links = 256;
constexpr int64_t most_bytes = int64_t{4} << 20; // that a test pulls
constexpr auto limit = 60s;                      // a hang fails a test

const hash128 the_key = new_key();

/// A link whose other end gives one tensor, at once or when the test lets it.
class giving_link final : public link {
public:
  giving_link(const piece_source& offers, bool is_slow) : offers_(offers), is_slow_(is_slow) {}

  void send(frame f) override {
    const auto wanted = std::get<piece_request>(decode(f));
    {
      const std::lock_guard lock(mutex_);
      if (is_slow_)
        return asked_.push_back(wanted);
    }
    say(offers_.answer(wanted));
  }
  void receive(link_handler handler) override {
    const std::lock_guard lock(mutex_);
    handler_ = std::make_shared<link_handler>(std::move(handler));
  }
  void close() override {
    std::shared_ptr<link_handler> last;
    {
      const std::lock_guard lock(mutex_);
      last.swap(handler_);
    }
    if (last)
      last->on_closed("closed");
  }

  bool is_asked() {
    const std::lock_guard lock(mutex_);
    return !asked_.empty();
  }
  void give() {
    const std::lock_guard lock(giving_);
    for (const piece_request& wanted : std::exchange(asked_, {}))
      say(offers_.answer(wanted));
  }
  void give_one_piece() {
    piece_request wanted;
    {
      const std::lock_guard lock(mutex_);
      wanted = asked_.front();
      asked_.erase(asked_.begin());
    }
    say(offers_.answer(wanted));
  }

private:
  void say(const piece& p) {
    std::shared_ptr<link_handler> to;
    {
      const std::lock_guard lock(mutex_);
      to = handler_;
    }
    if (to)
      to->on_frame(encode(p));
  }

  const piece_source& offers_;
  const bool is_slow_;
  std::mutex mutex_, giving_;
  std::shared_ptr<link_handler> handler_;
  std::vector<piece_request> asked_;
};

/// Peers whose addresses begin with "slow" give the weights that they have when the test lets them, all others at once.
class village {
public:
  explicit village(std::chrono::milliseconds patience)
      : all_([this](const std::string& address) { return call(address); }, patience) {
    offers_.offer(the_key, tensor(dtype::uint8, {most_bytes}));
  }

  std::future<failure> pull(const std::string& address, int64_t bytes = 4, std::stop_token stop = {}) {
    auto ended = std::make_shared<std::promise<failure>>();
    all_.try_pull(address, {.key = the_key,
                            .blob = tensor(dtype::uint8, {bytes}),
                            .done = [ended](const failure& why) { ended->set_value(why); },
                            .stop = std::move(stop)});
    return ended->get_future();
  }
  /// Pulls from as many slow peers as there may be links; returns when each has been asked.
  std::vector<std::future<failure>> pull_from_slow_ones(int64_t bytes = 4) {
    std::vector<std::future<failure>> under_way;
    for (int i = 0; i < most_links; ++i) {
      const std::string address = fmt::format("slow:{}", i);
      under_way.push_back(pull(address, bytes));
      await_asked(address);
    }
    return under_way;
  }
  void await_asked(const std::string& address) {
    const auto is_asked = [&] {
      const std::lock_guard lock(mutex_);
      return links_.contains(address) && links_.at(address)->is_asked();
    };
    for (const auto end = std::chrono::steady_clock::now() + limit; !is_asked(); std::this_thread::yield())
      REQUIRE(std::chrono::steady_clock::now() < end);
  }
  void give(const std::string& address) { links_.at(address)->give(); }
  void give_one_piece(const std::string& address) { links_.at(address)->give_one_piece(); }

private:
  link_ptr call(const std::string& address) {
    const std::lock_guard lock(mutex_);
    return links_[address] = std::make_shared<giving_link>(offers_, address.starts_with("slow"));
  }

  std::mutex mutex_;
  piece_source offers_;
  std::map<std::string, std::shared_ptr<giving_link>> links_;
  peers all_;
};

failure result(std::future<failure>& of) {
  REQUIRE(of.wait_for(limit) == std::future_status::ready);
  return of.get();
}

failure result(std::future<failure>&& of) {
  return result(of);
}

bool is_under_way(const std::future<failure>& pull) {
  return pull.wait_for(0s) != std::future_status::ready;
}

} // namespace

TEST_CASE("a link that something is pulled over outlives those that are not used", "[remote][D2]") {
  village at(limit);
  std::future<failure> slow = at.pull("slow:0");
  at.await_asked("slow:0");
  for (int i = 0; i < most_links + 10; ++i)
    CHECK_FALSE(result(at.pull(fmt::format("quick:{}", i))).failed());
  REQUIRE(is_under_way(slow));
  at.give("slow:0");
  CHECK_FALSE(result(slow).failed());
}

TEST_CASE("no link is opened while all are in use", "[remote][D2]") {
  village at(limit);
  std::vector<std::future<failure>> slow = at.pull_from_slow_ones();
  const failure why = result(at.pull("quick:0"));
  CHECK(why.code == errc::device_lost);
  CHECK_THAT(why.message, Catch::Contains("all 256 links to peers are in use"));
  REQUIRE(std::all_of(slow.begin(), slow.end(), is_under_way));
  for (int i = 0; i < most_links; ++i)
    at.give(fmt::format("slow:{}", i));
  for (std::future<failure>& each : slow)
    CHECK_FALSE(result(each).failed());
  CHECK_FALSE(result(at.pull("quick:0")).failed());
}

TEST_CASE("a link over which nothing comes makes room for another one", "[remote][D2]") {
  village at(0ms);
  std::vector<std::future<failure>> slow = at.pull_from_slow_ones();
  CHECK_FALSE(result(at.pull("quick:0")).failed());
  CHECK(result(slow.front()).code == errc::device_lost);
  CHECK(std::all_of(slow.begin() + 1, slow.end(), is_under_way));
}

TEST_CASE("a link over which little comes makes room for another one", "[remote][D2]") {
  constexpr auto patience = 600ms;
  village at(patience);
  std::vector<std::future<failure>> slow = at.pull_from_slow_ones(most_bytes);
  for (int round = 0; round < 4; ++round) { // each gives a piece of 16 KiB more often than it may be silent
    std::this_thread::sleep_for(patience / 3);
    for (int i = 0; i < most_links; ++i)
      at.give_one_piece(fmt::format("slow:{}", i));
  }
  REQUIRE(std::all_of(slow.begin(), slow.end(), is_under_way));
  CHECK_FALSE(result(at.pull("quick:0")).failed());
  CHECK(std::count_if(slow.begin(), slow.end(), is_under_way) == most_links - 1);
}

TEST_CASE("peers that cannot be reached are called again and again by several threads", "[remote][D2]") {
  std::atomic<int> calls = 0;
  peers all(
      [&](const std::string& address) -> link_ptr {
        ++calls;
        fail(errc::io, "nothing is at {}", address);
      },
      300ms);
  std::vector<std::future<failure>> lost;
  for (int i = 0; i < 200; ++i) {
    auto ended = std::make_shared<std::promise<failure>>();
    lost.push_back(ended->get_future());
    all.pull(fmt::format("nowhere:{}", i), {.key = the_key,
                                            .blob = tensor(dtype::uint8, {4}),
                                            .done = [ended](const failure& why) { ended->set_value(why); }});
  }
  for (std::future<failure>& each : lost)
    CHECK(result(each).code == errc::io);
  CHECK(calls >= 400);
}

TEST_CASE("a pull from a peer that answers nothing ends when it is stopped", "[remote][D2]") {
  village at(1h);
  std::stop_source stop;
  std::future<failure> asked = at.pull("slow:0", 4, stop.get_token());
  at.await_asked("slow:0");
  CHECK(is_under_way(asked));
  stop.request_stop();
  CHECK(result(asked).code == errc::cancelled);
  // One that is too late to be asked, too; the link is as good as before.
  CHECK(result(at.pull("slow:0", 4, stop.get_token())).code == errc::cancelled);
  std::future<failure> other = at.pull("slow:0");
  at.await_asked("slow:0");
  at.give("slow:0");
  CHECK_FALSE(result(other).failed());
}
