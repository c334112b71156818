// Times of another host's clock, moved to ours.
#include "remote/clocks.hpp"
#include "support/catch.hpp"

#include <random>

using namespace troupe;
using namespace troupe::remote;

namespace {

constexpr int64_t sent = 1'000'000, answered = 1'900'000;

/// Two nodes of 100 µs and 200 µs that the host began at `begin` of its clock, moved.
std::vector<device_timing> moved(int64_t begin, int64_t ahead) {
  std::vector<device_timing> timings{{.id = 0, .begin_ns = begin, .end_ns = begin + 100'000},
                                     {.id = 1, .begin_ns = begin + 150'000, .end_ns = begin + 350'000}};
  align_clocks(timings, ahead, sent, answered);
  CHECK(timings[0].end_ns == timings[0].begin_ns + 100'000);
  CHECK(timings[1].begin_ns == timings[0].begin_ns + 150'000);
  CHECK(timings[1].end_ns == timings[0].begin_ns + 350'000);
  return timings;
}

/// A host whose clock is ahead by `ahead` at time 0 and gains `gain` ns each ns; messages take `there` and `back`.
struct far_clock {
  int64_t ahead = 0;
  double gain = 0;

  int64_t ahead_at(int64_t ns) const { return ahead + static_cast<int64_t>(static_cast<double>(ns) * gain); }
  clock_sample exchange(int64_t at, int64_t there, int64_t work, int64_t back) const {
    const int64_t in = at + there, out = in + work;
    return {at, in + ahead_at(in), out + ahead_at(out), out + back};
  }
};

constexpr int64_t us = 1'000, ms = 1'000'000, hour = 3'600'000'000'000;

} // namespace

TEST_CASE("how far a clock is ahead is known to half the shortest way there and back", "[remote][trace]") {
  std::mt19937 random(1);
  std::exponential_distribution<double> delay(1.0 / (300 * us));
  for (const int64_t ahead : {int64_t{0}, 7 * hour, -1000 * hour}) {
    const far_clock host{ahead};
    clock_filter filter;
    CHECK(filter.ahead_ns() == 0);
    CHECK(filter.error_ns(0) == INT64_MAX);
    int64_t shortest = INT64_MAX, now = 0;
    for (int i = 0; i < 50; ++i) {
      const auto there = static_cast<int64_t>(delay(random)) + 20 * us,
                 back = static_cast<int64_t>(delay(random)) + 20 * us;
      filter.add(host.exchange(now += ms, there, i % 3 * 100 * us, back));
      shortest = std::min(shortest, there + back);
      CHECK(std::abs(filter.ahead_ns() - ahead) <= filter.error_ns(now + there + back + ms));
    }
    CHECK(filter.error_ns(now) <= shortest / 2 + 50 * us); // fifty samples in 50 ms: drift is 5 us at most
  }
}

TEST_CASE("clocks that drift apart are measured again by the chunks of a run", "[remote][trace]") {
  const far_clock host{-5 * ms, 80e-6};
  clock_filter filter;
  filter.add(host.exchange(0, 40 * us, 0, 40 * us));
  const int64_t later = 2 * hour;
  CHECK(std::abs(filter.ahead_ns() - host.ahead_at(later)) > 500 * ms);
  CHECK(std::abs(filter.ahead_ns() - host.ahead_at(later)) <= filter.error_ns(later));
  filter.add(host.exchange(later, 3 * ms, 20 * ms, 200 * us)); // it waited there for other chunks
  CHECK(std::abs(filter.ahead_ns() - host.ahead_at(later)) <= 1500 * us);
  CHECK(filter.error_ns(later + 25 * ms) < 1700 * us);
  filter.add(host.exchange(later + 100 * ms, 900 * ms, 0, 900 * ms)); // tells nothing new
  CHECK(std::abs(filter.ahead_ns() - host.ahead_at(later)) <= 1500 * us);
}

TEST_CASE("a clock that was stopped is believed anew, an impossible exchange is not", "[remote][trace][D2]") {
  clock_filter filter;
  filter.add(far_clock{10 * ms}.exchange(0, 50 * us, 0, 50 * us));
  filter.add(far_clock{-hour}.exchange(ms, 500 * us, 0, 500 * us)); // less exact, but elsewhere
  CHECK(std::abs(filter.ahead_ns() + hour) <= 500 * us);
  const int64_t before = filter.ahead_ns();
  filter.add({0, 0, 10, 5}); // more time there than here
  filter.add({0, 10, 0, 5});
  filter.add({5, 0, 0, 0});
  CHECK(filter.ahead_ns() == before);
  for (const int64_t a : {INT64_MIN, int64_t{0}, INT64_MAX})
    for (const int64_t b : {INT64_MIN, int64_t{0}, INT64_MAX}) {
      filter.add({sent, a, b, answered});
      CHECK(filter.error_ns(answered) >= 0);
    }
}

TEST_CASE("times of another clock are moved by as much as it is ahead", "[remote][trace]") {
  for (const int64_t ahead : {int64_t{0}, int64_t{7'000'000'000}, int64_t{-3'600'000'000'000}})
    CHECK(moved(1'200'000 + ahead, ahead)[0].begin_ns == 1'200'000);
}

TEST_CASE("work is never before its chunk was sent nor after its answer", "[remote][trace]") {
  CHECK(moved(300'000, 0)[0].begin_ns == sent);                            // the clocks have drifted apart
  CHECK(moved(5'000'000'000, 1'000'000'000)[1].end_ns == answered);        // the other way
  CHECK(moved(sent - 1, 0)[0].begin_ns == sent);                           // a small error of the measurement
  std::vector<device_timing> longer{{.begin_ns = 0, .end_ns = 5'000'000}}; // than the time between
  align_clocks(longer, 0, sent, answered);
  CHECK(longer[0].begin_ns == sent);
}

TEST_CASE("impossible times of another host do no harm", "[remote][trace][D2]") {
  for (const int64_t begin : {INT64_MIN, int64_t{0}, INT64_MAX})
    for (const int64_t end : {INT64_MIN, int64_t{0}, INT64_MAX})
      for (const int64_t ahead : {INT64_MIN, int64_t{0}, INT64_MAX}) {
        std::vector<device_timing> timings{{.begin_ns = begin, .end_ns = end}};
        align_clocks(timings, ahead, sent, answered);
        CHECK(timings.size() == 1);
      }
  std::vector<device_timing> none;
  align_clocks(none, 1, sent, answered);
  CHECK(none.empty());
}
