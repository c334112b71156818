// Times of another host's clock, moved to ours.
#include "remote/clocks.hpp"
#include "support/catch.hpp"

using namespace troupe;
using remote::align_clocks;

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

} // namespace

TEST_CASE("times of another clock are moved by what it is ahead", "[remote][trace]") {
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
