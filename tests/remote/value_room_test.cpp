// Host memory that sessions make a worker hold: how much one of them may have, which values count, and when room is
// given back.
#include "cpu/cpu_device.hpp"
#include "remote/value_room.hpp"
#include "remote/values.hpp"
#include "support/catch.hpp"
#include "support/grammar_talk.hpp"

using namespace troupe;
using namespace troupe::remote;
using Catch::Contains;
using test::far_host;
using test::round_trip;
using test::spoken_session;

namespace {

constexpr int64_t kib = 1 << 10;

/// A worker whose sessions may hold `bytes` together.
far_host host_with_room(int64_t bytes) {
  return far_host({make_cpu_device("cpu")}, {.value_bytes = bytes});
}

/// Has the worker keep a value of `bytes` under `key`, and returns why it does not.
failure put(spoken_session& s, const hash128& key, int64_t bytes) {
  const hash128 offered = new_key();
  const tensor t(dtype::uint8, {bytes});
  s.say(put_value{.key = key, .value = describe(t, offered, s.offers().offers())});
  const auto told = s.hear<was_put>();
  s.offers().offers().withdraw(offered);
  return told ? told->why : failure{errc::device_lost, "no answer"};
}

chunk_result run_first(spoken_session& s, const round_trip& m, uint64_t execution) {
  s.say(s.chunk_order(m.bound, m.first, execution));
  const auto told = s.hear<chunk_made>();
  return told ? told->result : chunk_result{.code = errc::device_lost, .message = "no answer"};
}

} // namespace

TEST_CASE("no session holds more than it leaves to the others", "[remote][D2]") {
  const auto room = std::make_shared<value_room>(1000);
  value_room::share one(room), two(room), three(room);
  const auto has_room = [](value_room::share& s, int64_t bytes) {
    return !capture([&] { s.hold(bytes); }).failed(); // given back at once
  };
  CHECK(has_room(one, 500));
  CHECK_FALSE(has_room(one, 501));
  held_memory first = one.hold(500);
  CHECK_FALSE(has_room(one, 1));
  CHECK(has_room(two, 250));
  CHECK_FALSE(has_room(two, 251));
  const held_memory second = two.hold(250);
  CHECK(has_room(three, 125));
  CHECK_FALSE(has_room(three, 126));
  const held_memory copy = first;
  first = nullptr;
  CHECK_FALSE(has_room(three, 126));
}

TEST_CASE("memory is given back when the last handle to it goes", "[remote][D2]") {
  const auto room = std::make_shared<value_room>(1000);
  value_room::share s(room);
  for (int i = 0; i < 10; ++i) {
    held_memory held = s.hold(500);
    CHECK_THROWS_WITH(s.hold(1), Contains("no room for 1 bytes more") && Contains("500 for the session"));
  }
}

TEST_CASE("sizes that cannot be are not held", "[remote][D2]") {
  value_room::share s(std::make_shared<value_room>(1000));
  for (const int64_t bytes : {int64_t{-1}, INT64_MIN, INT64_MAX, INT64_MAX / 2 + 1})
    CHECK(capture([&] { s.hold(bytes); }).code == errc::out_of_memory);
  CHECK_NOTHROW(s.hold(0));
}

TEST_CASE("values that are put are kept while there is room", "[remote][D2]") {
  far_host host = host_with_room(400 * kib);
  spoken_session greedy(host);
  const hash128 first = new_key();
  CHECK_FALSE(put(greedy, first, 100 * kib).failed());
  CHECK_FALSE(put(greedy, new_key(), 100 * kib).failed());
  CHECK(put(greedy, new_key(), kib).code == errc::out_of_memory);
  CHECK_FALSE(greedy.has_ended());
  spoken_session other(host);
  CHECK_FALSE(put(other, new_key(), 100 * kib).failed());
  greedy.say(release{{first}});
  CHECK_FALSE(put(greedy, new_key(), 50 * kib).failed());
}

TEST_CASE("what a session held is given back when its link ends", "[remote][D2]") {
  far_host host = host_with_room(400 * kib);
  for (int i = 0; i < 3; ++i) {
    spoken_session s(host);
    CHECK_FALSE(put(s, new_key(), 200 * kib).failed());
    REQUIRE(host.drop_newest());
  }
}

TEST_CASE("a fetched value that cannot be kept is an answer", "[remote][D2]") {
  far_host host = host_with_room(300 * kib);
  spoken_session s(host);
  const hash128 key = new_key();
  REQUIRE_FALSE(put(s, key, 100 * kib).failed());
  s.say(fetch_kept{.key = key});
  const auto told = s.hear<fetched>();
  REQUIRE(told);
  CHECK(told->why.code == errc::out_of_memory);
}

TEST_CASE("a chunk whose values have no room fails, and later ones run", "[remote][D2]") {
  far_host host = host_with_room(200 * kib);
  spoken_session s(host);
  const round_trip m = test::there_and_back(s.devices()[0], 150); // values of 88 KiB
  REQUIRE_FALSE(s.install(m.bound, 0).failed());
  const hash128 key = new_key();
  REQUIRE_FALSE(put(s, key, 50 * kib).failed());
  const chunk_result full = run_first(s, m, 1);
  CHECK(full.code == errc::out_of_memory);
  CHECK_THAT(full.message, Contains("no room"));
  s.say(end_chunks{.execution = 1});
  s.say(release{{key}});
  const chunk_result upload_only = run_first(s, m, 2);
  CHECK(upload_only.code == errc::out_of_memory); // its input has room, its output has none beside that
  s.close();

  far_host roomy = host_with_room(600 * kib);
  spoken_session again(roomy);
  REQUIRE_FALSE(again.install(m.bound, 0).failed());
  CHECK(run_first(again, m, 1).ok());
}

TEST_CASE("a binding that has no room is not installed", "[remote][D2]") {
  far_host host = host_with_room(64);
  spoken_session s(host);
  const round_trip m = test::there_and_back(s.devices()[0]);
  CHECK(s.install(m.bound, 0).code == errc::out_of_memory);
  CHECK_FALSE(s.has_ended());
}
