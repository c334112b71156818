// How pieces fit the link: never enough outstanding to make heartbeats wait, and never less than fills the link.
#include "support/catch.hpp"
#include "support/link_pair.hpp"
#include "support/piece_end.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct measured {
  double bytes_per_second = 0, room_s = 0;
  int64_t piece_bytes = 0;
};

/// Pulls this number of bytes, in virtual time; the figures are those of the second half.
measured pull_over(link_conditions how, int64_t bytes) {
  link_pair pair(how, link_driver::by_hand);
  const auto clock = [&] { return pair.now(); };
  piece_end puller(pair, 0, clock), source(pair, 1, clock);
  source.source().offer({1, 1}, tensor(dtype::uint8, {bytes}));
  source.source().offer({2, 2}, tensor(dtype::uint8, {100}));
  puller.puller().pull({2, 2}, tensor(dtype::uint8, {100}), [](const failure&) {});
  pair.drain(); // so few bytes tell next to nothing about the rate
  link_pair::time_point half, end;
  puller.puller().pull(
      {1, 1}, tensor(dtype::uint8, {bytes}), [&](const failure& f) { CHECK(!f.failed()); },
      [&](int64_t done, int64_t) {
        if (half == link_pair::time_point() && done >= bytes / 2) {
          half = pair.now();
          puller.count_anew();
        }
        end = pair.now();
      });
  pair.drain();
  const double seconds = std::chrono::duration<double>(end - half).count();
  CHECK(puller.longest <= remote::largest_piece);
  return {.bytes_per_second = static_cast<double>(bytes / 2) / seconds,
          .room_s = static_cast<double>(puller.most_outstanding_bytes()) / how.bytes_per_second,
          .piece_bytes = puller.puller().piece_bytes()};
}

} // namespace

TEST_CASE("a slow link gets small pieces and is full", "[remote]") {
  const measured slow = pull_over({.delay = 5ms, .bytes_per_second = 2e6}, 8 << 20);
  CHECK(slow.piece_bytes <= 2e6 * 0.05);
  CHECK(slow.bytes_per_second > 0.9 * 2e6);
  CHECK(slow.room_s < 0.25);
  const measured slowest = pull_over({.delay = 5ms, .bytes_per_second = 1e5}, 2 << 20);
  CHECK(slowest.bytes_per_second > 0.9 * 1e5);
  CHECK(slowest.room_s < 0.5); // two pieces, of which there are no smaller ones
}

TEST_CASE("a fast link gets large pieces and is full", "[remote]") {
  const measured middle = pull_over({.delay = 100us, .bytes_per_second = 100e6}, 128 << 20);
  CHECK(middle.bytes_per_second > 0.95 * 100e6);
  CHECK((middle.piece_bytes > 500'000 && middle.piece_bytes <= remote::largest_piece));
  CHECK(middle.room_s < 0.25);
  const measured fast = pull_over({.delay = 100us, .bytes_per_second = 5e9}, 256 << 20);
  CHECK(fast.piece_bytes == remote::largest_piece);
  CHECK(fast.bytes_per_second > 0.95 * 5e9);
}

TEST_CASE("a long link is filled although its answers take long", "[remote]") {
  const measured far = pull_over({.delay = 100ms, .bytes_per_second = 50e6}, 256 << 20);
  CHECK(far.bytes_per_second > 0.85 * 50e6);
  const measured farther = pull_over({.delay = 300ms, .bytes_per_second = 5e6}, 64 << 20);
  CHECK(farther.bytes_per_second > 0.85 * 5e6);
}

TEST_CASE("a link that gets slower gets smaller pieces, and larger ones when it recovers", "[remote]") {
  constexpr int64_t bytes = 256 << 20;
  link_pair pair({.delay = 1ms, .bytes_per_second = 200e6}, link_driver::by_hand);
  const auto clock = [&] { return pair.now(); };
  piece_end puller(pair, 0, clock), source(pair, 1, clock);
  source.source().offer({1, 1}, tensor(dtype::uint8, {bytes}));
  int64_t came = 0;
  puller.puller().pull(
      {1, 1}, tensor(dtype::uint8, {bytes}), [](const failure&) {}, [&](int64_t done, int64_t) { came = done; });
  const auto until = [&](int64_t wanted) {
    while (came < wanted)
      REQUIRE(pair.step());
  };
  until(64 << 20);
  CHECK(puller.puller().piece_bytes() > 500'000);
  pair.set_conditions({.delay = 1ms, .bytes_per_second = 2e6});
  until(128 << 20);
  CHECK(puller.puller().piece_bytes() <= 100'000);
  puller.count_anew();
  until(130 << 20);
  CHECK(puller.most_outstanding_bytes() < 500'000);
  pair.set_conditions({.delay = 1ms, .bytes_per_second = 200e6});
  until(bytes);
  CHECK(puller.puller().piece_bytes() > 500'000);
}
