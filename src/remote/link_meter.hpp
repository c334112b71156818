// How fast the link to a host is, and how far the host's clock is ahead: measured by questions that the host answers at
// once.
#pragma once

#include "remote/clocks.hpp"
#include "remote/link.hpp"
#include "remote/question_book.hpp"

namespace troupe::remote {

/// What a link was measured to do.
struct link_figures {
  double round_trip_s = 0;
  double up_bytes_per_s = 0, down_bytes_per_s = 0; // to the host, from it
  bool up_tells = true, down_tells = true;         // whether the bytes took long enough to tell the speed
};

/// Returns what to believe of a link: what was just measured, with the speeds of an earlier, longer measurement where
/// the new one was too short to tell them.
link_figures believed(link_figures measured, const std::optional<link_figures>& earlier);

/// How a new link is measured.
struct link_measuring {
  std::optional<link_figures> earlier; // what the link was measured to do at some other time
  measuring_effort effort;
};

/// See the top of this file. Thread-safe.
class link_meter {
public:
  /// Asks by `questions`, which live longer; `host` is what errors call the host.
  link_meter(question_book& questions, const std::string& host) : questions_(questions), host_(host) {}

  /// Measures the link, which is busy meanwhile. Throws `errc::timeout`, `errc::device_lost`.
  link_figures measure(const measuring_effort& effort);
  /// Returns how far the host's clock is ahead of this process's, by all exchanges so far and this one.
  int64_t clock_ahead_ns(const std::optional<clock_sample>& exchange);

private:
  /// Returns the seconds that bytes there and bytes back take, a round trip included.
  double exchange(size_t up, size_t down);

  question_book& questions_;
  const std::string host_;
  std::mutex mutex_; // guards `clock_`
  clock_filter clock_;
};

} // namespace troupe::remote
