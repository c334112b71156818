// A worker holds the chunks of a session to their plan: a chunk that comes out of order, twice, or for an execution
// that has failed never reaches a device.
#include "cpu/cpu_device.hpp"
#include "remote/served_executions.hpp"
#include "support/catch.hpp"
#include "support/grammar_talk.hpp"

using namespace troupe;
using Catch::Contains;
using remote::served_executions;
using test::far_host;
using test::round_trip;
using test::spoken_session;
using test::there_and_back;

namespace {

device_info far_info() {
  return make_cpu_device("cpu")->info();
}

} // namespace

TEST_CASE("a chunk that its plan does not allow yet ends the link", "[remote]") {
  std::string refused;
  const auto log = [&](const std::string& event, const remote::service_options::facts& facts) {
    if (event == "refused")
      refused = facts.at(1).second;
  };
  far_host host({make_cpu_device("cpu")}, {.log = log});
  spoken_session s(host);
  const round_trip m = there_and_back(s.devices()[0]);
  REQUIRE_FALSE(s.install(m.bound, 0).failed());
  s.say(s.chunk_order(m.bound, m.last, 1));
  CHECK(s.await_end());
  CHECK_FALSE(s.hear<remote::chunk_made>());
  CHECK(refused == fmt::format("chunk {} of execution 1 is not to run now", m.last));
}

TEST_CASE("a chunk alone does not see the values that another execution has left on its device", "[remote]") {
  far_host host({make_cpu_device("cpu")});
  spoken_session s(host);
  const round_trip m = there_and_back(s.devices()[0]);
  REQUIRE_FALSE(s.install(m.bound, 0).failed());
  for (const chunk_id c : {m.first, m.last}) {
    s.say(s.chunk_order(m.bound, c, 1));
    REQUIRE(s.hear<remote::chunk_made>()->result.ok());
  }
  s.say(s.chunk_order(m.bound, m.last, 2));
  CHECK(s.await_end());
}

TEST_CASE("a chunk that comes twice, or on a slot that another execution has, ends the link", "[remote]") {
  far_host host({make_cpu_device("cpu")});
  const auto ends = [&](const std::function<void(spoken_session&, const round_trip&)>& wrong) {
    spoken_session s(host);
    const round_trip m = there_and_back(s.devices()[0]);
    REQUIRE_FALSE(s.install(m.bound, 0).failed());
    s.say(s.chunk_order(m.bound, m.first, 1));
    REQUIRE(s.hear<remote::chunk_made>()->result.ok());
    wrong(s, m);
    return s.await_end();
  };
  CHECK(ends([](auto& s, auto& m) { s.say(s.chunk_order(m.bound, m.first, 1)); }));
  CHECK(ends([](auto& s, auto& m) { s.say(s.chunk_order(m.bound, m.first, 2)); }));
  CHECK(ends([](auto& s, auto& m) {
    remote::run_chunk other = s.chunk_order(m.bound, m.last, 1);
    other.slot = 1;
    s.say(other);
  }));
}

TEST_CASE("two bound plans under one number end the link", "[remote]") {
  far_host host({make_cpu_device("a"), make_cpu_device("b")});
  spoken_session s(host);
  const round_trip one = there_and_back(s.devices()[0], 8), other = there_and_back(s.devices()[0], 16);
  remote::install first = s.install_order(one.bound, 0, 0), second = s.install_order(other.bound, 0, 1);
  second.bound_plan = first.bound_plan;
  s.say(first);
  REQUIRE_FALSE(s.hear<remote::installed>()->why.failed());
  s.say(second);
  CHECK(s.await_end());
}

TEST_CASE("two plans under one number end the link", "[remote]") {
  far_host host({make_cpu_device("cpu")});
  spoken_session s(host);
  const round_trip one = there_and_back(s.devices()[0], 8), other = there_and_back(s.devices()[0], 16);
  REQUIRE_FALSE(s.install(one.bound, 0).failed());
  remote::install second = s.install_order(other.bound, 0);
  second.plan = s.install_order(one.bound, 0).plan;
  s.say(second);
  CHECK(s.await_end());
}

TEST_CASE("an execution that has failed stays failed until it is ended", "[remote]") {
  far_host host({make_cpu_device("cpu")});
  spoken_session s(host);
  const round_trip m = there_and_back(s.devices()[0], 200);
  REQUIRE_FALSE(s.install(m.bound, 0).failed());
  remote::run_chunk lost = s.chunk_order(m.bound, m.first, 1);
  REQUIRE(lost.uploads[0].from == remote::origin::sender);
  lost.uploads[0].key = remote::new_key(); // of nothing
  s.say(lost);
  CHECK_FALSE(s.hear<remote::chunk_made>()->result.ok());
  s.say(s.chunk_order(m.bound, m.last, 1));
  const auto later = s.hear<remote::chunk_made>();
  REQUIRE(later);
  CHECK(later->result.code == errc::cancelled);
  s.say(remote::end_chunks{0, 1});
  for (const chunk_id c : {m.first, m.last}) {
    s.say(s.chunk_order(m.bound, c, 1));
    CHECK(s.hear<remote::chunk_made>()->result.ok());
  }
}

TEST_CASE("executions are held to their plan's order, a slot to one of them", "[remote]") {
  const round_trip m = there_and_back(far_info());
  served_executions all;
  const served_executions::place one{1, 0}, two{2, 0};
  const auto stop = all.begin(one, m.bound, 0, m.first, 0);
  CHECK_THROWS_WITH(all.begin(two, m.bound, 0, m.first, 0), Contains("slot 0, which execution 1 has"));
  all.finish(one, m.first, true);
  CHECK_THROWS_WITH(all.begin(one, m.bound, 0, m.first, 0), Contains("not to run now"));
  all.begin(one, m.bound, 0, m.last, 0);
  CHECK_THROWS_WITH(all.end(one), Contains("1 chunks of it have not"));
  all.finish(one, m.last, true);
  CHECK_FALSE(stop->load());
  CHECK_FALSE(all.end(one)); // it has ended by itself
  all.begin(two, m.bound, 0, m.first, 0);
  const auto failed = all.begin({2, 1}, m.bound, 0, m.first, 0);
  CHECK(all.finish(two, m.first, false));
  CHECK_FALSE(failed->load()); // the session is told first
  CHECK(all.stop(2));
  CHECK(failed->load());
  all.finish({2, 1}, m.first, false);
  CHECK(all.begin(two, m.bound, 0, m.last, 0)->load());
  CHECK_FALSE(all.finish(two, m.last, false));
  all.begin({3, 0}, m.bound, 0, m.first, 0); // a failed execution has no slot
  CHECK(all.end(two));
  CHECK(all.end({2, 1}));
  all.stop_all();
  CHECK(all.take_idle().empty());
  all.finish({3, 0}, m.first, true);
  CHECK(all.take_idle().size() == 1);
}

TEST_CASE("an execution that failed on one device of a worker has failed on the others", "[remote]") {
  const round_trip m = there_and_back(far_info());
  served_executions all;
  all.begin({1, 0}, m.bound, 0, m.first, 0);
  const auto stop = all.begin({1, 1}, m.bound, 0, m.first, 0);
  CHECK(all.finish({1, 0}, m.first, false));
  CHECK(all.stop(1));
  CHECK(stop->load());
  all.finish({1, 1}, m.first, true);
  CHECK(all.end({1, 0}));
  CHECK(all.begin({1, 1}, m.bound, 0, m.last, 0)->load()); // it is still known there
  all.finish({1, 1}, m.last, false);
  CHECK(all.end({1, 1}));
}
