#include "remote/link_meter.hpp"

namespace troupe::remote {
namespace {

using namespace std::chrono_literals;

/// An answer to a measurement must come within this.
constexpr auto ping_timeout = 10s;
constexpr int pings = 5;
/// Of a measurement, in bytes.
constexpr size_t first_load = size_t{64} << 10;
constexpr size_t piece_load = size_t{256} << 10;

} // namespace

link_figures believed(link_figures measured, const std::optional<link_figures>& earlier) {
  if (earlier && !measured.up_tells)
    measured.up_bytes_per_s = earlier->up_bytes_per_s;
  if (earlier && !measured.down_tells)
    measured.down_bytes_per_s = earlier->down_bytes_per_s;
  return measured;
}

double link_meter::exchange(size_t up, size_t down) {
  std::vector<std::future<pong>> answers;
  const int64_t begin = now_ns();
  do { // as values travel: in pieces, several under way
    const size_t some_up = std::min(up, piece_load), some_down = std::min(down, piece_load);
    answers.push_back(
        questions_.ask(ping{.answer_bytes = static_cast<uint32_t>(some_down), .load = std::vector<uint8_t>(some_up)}));
    up -= some_up;
    down -= some_down;
  } while (up + down > 0);
  for (const auto& answer : answers)
    if (answer.wait_for(ping_timeout) != std::future_status::ready)
      fail(errc::timeout, "host '{}' does not answer", host_);
  const int64_t end = now_ns();
  const pong there = answers.back().get();
  clock_ahead_ns(clock_sample{begin, there.clock_ns, there.clock_ns, end});
  return static_cast<double>(end - begin) * 1e-9;
}

link_figures link_meter::measure(const measuring_effort& effort) {
  link_figures measured;
  measured.round_trip_s = exchange(0, 0);
  for (int i = 1; i < pings; ++i)
    measured.round_trip_s = std::min(measured.round_trip_s, exchange(0, 0));
  const auto speed = [&](auto taken_for, bool& tells) {
    const double telling_s = std::max(effort.telling_s, effort.telling_trips * measured.round_trip_s);
    size_t load = std::min(first_load, effort.last_load);
    double taken = taken_for(load) - measured.round_trip_s;
    while (taken < telling_s && load < effort.last_load)
      taken = taken_for(load = std::min(load * 4, effort.last_load)) - measured.round_trip_s;
    tells = taken >= telling_s;
    for (int i = 1; i < effort.repeats; ++i)
      // The shortest counts: other traffic and busy threads only add to the time.
      taken = std::min(taken, taken_for(load) - measured.round_trip_s);
    return static_cast<double>(load) / std::max(taken, 1e-6);
  };
  measured.up_bytes_per_s = speed([&](size_t load) { return exchange(load, 0); }, measured.up_tells);
  measured.down_bytes_per_s = speed([&](size_t load) { return exchange(0, load); }, measured.down_tells);
  return measured;
}

int64_t link_meter::clock_ahead_ns(const std::optional<clock_sample>& exchange) {
  const std::lock_guard lock(mutex_);
  if (exchange)
    clock_.add(*exchange);
  return clock_.ahead_ns();
}

} // namespace troupe::remote
