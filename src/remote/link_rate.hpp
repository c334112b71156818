// How fast a link delivers pieces, and how much to ask of it at once. Pure arithmetic on times that it is given; used
// by one thread at a time.
//
// The rate is the bytes that came while one piece was on its way, over that time. It grows with what is outstanding
// until the link is full, so a little more is asked for each time; once full it stays, and what is asked for beyond it
// would only wait in the link, in front of the heartbeats and in both sides' memory. Hence what may be outstanding is
// what the link carries during one empty round trip and a little more.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe::remote {

/// Smallest and largest piece; a link carries up to `piece_window` of them at once. CAF moves messages of 1 MB best.
inline constexpr int64_t smallest_piece = int64_t{16} << 10, largest_piece = int64_t{1} << 20;
inline constexpr int piece_window = 16;

class link_rate {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// What is noted when a piece is asked for, and given back when it comes.
  struct departure {
    time_point at;
    int64_t received_before = 0;
  };

  departure ask(time_point now) const { return {now, received_}; }

  /// A piece has come. `full`: more was wanted than could be asked for, so that the link was as busy as it may be.
  void receive(const departure& asked, int64_t bytes, bool full, time_point now);

  /// Returns the rate, 0 if nothing has come yet.
  double bytes_per_second() const { return bytes_per_second_; }
  /// Returns how many bytes may be outstanding; one piece may be in any case.
  int64_t room() const;
  /// Returns how long the next pieces should be: all that may be outstanding is half a window of them, a window if they
  /// are the largest.
  int64_t piece_bytes() const;

private:
  double bytes_per_second_ = 0;
  double round_trip_ = 0; // seconds, the shortest so far
  int64_t received_ = 0;
};

} // namespace troupe::remote
