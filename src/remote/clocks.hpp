// Times that another host took, on this process's clock.
//
// How far the host's clock is ahead is estimated as NTP does it (RFC 5905, sections 8 and 10): an exchange of messages
// bounds it to an interval as long as the messages were on their way, and of all exchanges the one with the shortest
// interval counts. An estimate grows worse as the clocks drift apart, so that a later exchange, of a measurement or of
// a traced chunk, takes its place.
#pragma once

#include "device/device.hpp"

#include <algorithm>
#include <optional>

namespace troupe::remote {

/// Returns a − b, wrapping around: times of a hostile host may be anything.
inline int64_t time_between(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

/// One exchange with another host: sent and answered by this process's clock, received and replied to by the host's.
struct clock_sample {
  int64_t sent_ns = 0, received_ns = 0, replied_ns = 0, answered_ns = 0;
};

/// Returns the exchange that a chunk's work is part of; nullopt if the host told no times.
inline std::optional<clock_sample> sample_of(std::span<const device_timing> timings, int64_t sent_ns,
                                             int64_t answered_ns) {
  if (timings.empty())
    return std::nullopt;
  clock_sample s{sent_ns, INT64_MAX, INT64_MIN, answered_ns};
  for (const device_timing& t : timings) {
    s.received_ns = std::min(s.received_ns, t.begin_ns);
    s.replied_ns = std::max(s.replied_ns, t.end_ns);
  }
  return s;
}

/// How far another host's clock is ahead of this process's, from exchanges; see the top of this file.
class clock_filter {
public:
  /// The most that two clocks drift apart, in parts of the time: a quartz is right to 50 ppm.
  static constexpr double drift = 100e-6;

  /// Takes an exchange over if it tells more than what is known, or contradicts it: then the host's clock was stopped
  /// or set. Exchanges that took less time here than there are impossible and tell nothing.
  void add(const clock_sample& s) {
    const int64_t here = time_between(s.answered_ns, s.sent_ns), there = time_between(s.replied_ns, s.received_ns);
    if (here < 0 || there < 0 || there > here)
      return;
    const int64_t half = (here - there + 1) / 2;
    const estimate fresh{time_between(s.replied_ns, s.answered_ns) + half, half, s.answered_ns};
    const int64_t known = error_ns(s.answered_ns);
    const auto apart = static_cast<uint64_t>(time_between(fresh.ahead_ns, best_ ? best_->ahead_ns : 0));
    const bool contradicts = std::min(apart, 0 - apart) > static_cast<uint64_t>(half) + static_cast<uint64_t>(known);
    if (!best_ || half <= known || contradicts)
      best_ = fresh;
  }

  /// Returns the estimate; 0 before there is an exchange.
  int64_t ahead_ns() const { return best_ ? best_->ahead_ns : 0; }

  /// Returns the most that `ahead_ns` is wrong at a time of this process's clock; the largest number before there is an
  /// exchange.
  int64_t error_ns(int64_t at_ns) const {
    if (!best_)
      return INT64_MAX;
    const auto age = static_cast<double>(std::max<int64_t>(time_between(at_ns, best_->at_ns), 0));
    return best_->error_ns + static_cast<int64_t>(age * drift);
  }

private:
  struct estimate {
    int64_t ahead_ns = 0, error_ns = 0;
    int64_t at_ns = 0; // of this process's clock
  };
  std::optional<estimate> best_;
};

/// Moves the times of a chunk's work to this process's clock, which the host's is believed to be `ahead_ns` ahead of.
/// Whatever the error of that, the work was done after the chunk was sent and before its answer had come: what is
/// outside is moved in as a whole, by as little as that takes. Times of a hostile host may be anything.
inline void align_clocks(std::vector<device_timing>& timings, int64_t ahead_ns, int64_t sent_ns, int64_t answered_ns) {
  const auto work = sample_of(timings, sent_ns, answered_ns);
  if (!work)
    return;
  // If the work seems longer than the time between, its begin is right.
  const int64_t ahead = std::min(std::max(ahead_ns, time_between(work->replied_ns, answered_ns)),
                                 time_between(work->received_ns, sent_ns));
  for (device_timing& t : timings) {
    t.begin_ns = time_between(t.begin_ns, ahead);
    t.end_ns = time_between(t.end_ns, ahead);
  }
}

} // namespace troupe::remote
