// Links between workers: any session may name any address, and that costs neither threads nor those that can be
// reached.
#include "remote/peers.hpp"
#include "remote/values.hpp"
#include "support/catch.hpp"
#include "support/link_pair.hpp"

#include <fmt/format.h>

#include <future>

using namespace troupe;
using namespace troupe::remote;
using namespace std::chrono_literals;

namespace {

const hash128 the_key = new_key();

/// Calls end when the test lets them; the only address that answers is "there:1".
class street {
public:
  link_ptr call(const std::string& address) {
    if (address == "there:1") {
      const std::lock_guard lock(mutex_);
      pairs_.push_back(std::make_unique<test::link_pair>());
      const link_ptr far = pairs_.back()->end(1);
      far->receive(
          {.on_frame = [this,
                        far](const frame& f) { far->send(encode(offers_.answer(std::get<piece_request>(decode(f))))); },
           .on_closed = [](const std::string&) {}});
      return pairs_.back()->end(0);
    }
    std::unique_lock lock(mutex_);
    most_ = std::max(most_, ++calling_);
    changed_.notify_all();
    changed_.wait_for(lock, 10s, [&] { return open_; });
    --calling_;
    fail(errc::io, "nobody is at {}", address);
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool await_calls(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 10s, [&] { return most_ >= count; });
  }
  size_t most() {
    const std::lock_guard lock(mutex_);
    return most_;
  }
  piece_source& offers() { return offers_; }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  piece_source offers_;
  std::vector<std::unique_ptr<test::link_pair>> pairs_;
  size_t calling_ = 0, most_ = 0;
  bool open_ = false;
};

std::future<failure> pull(peers& from, const std::string& address, const tensor& blob) {
  auto ended = std::make_shared<std::promise<failure>>();
  from.try_pull(address,
                {.key = the_key, .blob = blob, .done = [ended](const failure& why) { ended->set_value(why); }});
  return ended->get_future();
}

/// The same for what nothing else has.
std::future<failure> pull_kept(peers& from, const tensor& blob) {
  auto ended = std::make_shared<std::promise<failure>>();
  from.pull("there:1", {.key = the_key, .blob = blob, .done = [ended](const failure& why) { ended->set_value(why); }});
  return ended->get_future();
}

} // namespace

TEST_CASE("peers that cannot be reached cost few threads, and keep nobody from one that can", "[remote][D2]") {
  street at;
  tensor kept(dtype::uint8, {4});
  std::fill_n(kept.mutable_data<uint8_t>(), 4, uint8_t{7});
  at.offers().offer(the_key, kept);
  peers all([&](const std::string& address) { return at.call(address); }, 3s);
  std::vector<std::future<failure>> lost;
  for (int i = 0; i < 300; ++i)
    lost.push_back(pull(all, fmt::format("nowhere:{}", i), tensor(dtype::uint8, {4})));
  CHECK(at.await_calls(32));
  tensor blob(dtype::uint8, {4});
  std::future<failure> found = pull(all, "there:1", blob);
  at.open();
  for (auto& each : lost) {
    REQUIRE(each.wait_for(20s) == std::future_status::ready);
    CHECK(each.get().code == errc::device_lost);
  }
  REQUIRE(found.wait_for(20s) == std::future_status::ready);
  CHECK_FALSE(found.get().failed());
  CHECK(blob.values<uint8_t>()[3] == 7);
  CHECK(at.most() == 32);
  all.close();
  CHECK(pull(all, "there:1", blob).get().code == errc::cancelled);
}

TEST_CASE("a peer that does not have what it should is asked again, as long as one may be away", "[remote][D2][C11]") {
  street at;
  peers all([&](const std::string& address) { return at.call(address); }, 500ms);
  tensor blob(dtype::uint8, {4});
  const auto begin = std::chrono::steady_clock::now();
  const failure why = pull_kept(all, blob).get();
  CHECK(why.code == errc::io);
  CHECK_THAT(why.message, Catch::Contains("there:1 does not give what it keeps"));
  CHECK(std::chrono::steady_clock::now() - begin >= 500ms);
  // Nor is what can be had elsewhere waited for.
  CHECK(pull(all, "there:1", blob).get().code == errc::device_failed);

  std::future<failure> later = pull_kept(all, blob);
  tensor kept(dtype::uint8, {4});
  std::fill_n(kept.mutable_data<uint8_t>(), 4, uint8_t{7});
  at.offers().offer(the_key, kept);
  CHECK_FALSE(later.get().failed());
  CHECK(blob.values<uint8_t>()[3] == 7);
  at.offers().withdraw(the_key);

  std::future<failure> last = pull_kept(all, blob);
  all.close();
  CHECK(last.get().code == errc::cancelled);
}
