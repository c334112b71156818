// How fast a replica is: predicted at first, then by what its pieces took. Exponentially weighted means, so that a few
// pieces are enough to see a replica that has become slow, or fast again.
#pragma once

#include "strategy/stream.hpp"

#include <optional>
#include <utility>

namespace troupe {

class replica_speed {
public:
  explicit replica_speed(const replica_figures& predicted) : figures_(predicted) {}

  /// Returns the seconds that a piece of so many rows should take.
  double seconds(double rows) const { return figures_.seconds(rows); }
  const replica_figures& figures() const { return figures_; }
  /// Returns by what factor a piece may well take longer than `seconds` says: 1 and twice the mean deviation so far.
  double caution() const { return 1 + 2 * deviation_; }

  /// Returns whether it was measured several times, and was as expected in the end.
  bool is_reliable() const { return measurements_ >= 8 && deviation_ < 0.25; }

  /// A piece took `seconds`, part of it to prepare: as a rule, the first piece with this number of rows.
  void prepared(double rows, double seconds);
  /// Returns what a new number of rows costs beyond the time of the piece, by those so far; empty before the first.
  std::optional<double> size_seconds() const;

  /// A piece of `rows` took so many seconds.
  void measured(double rows, double seconds);
  /// The same, after so long a time that nothing before counts: how much of it grows with rows is as in `predicted`.
  void measured_anew(double rows, double seconds, const replica_figures& predicted);

private:
  replica_figures figures_;
  uint64_t measurements_ = 0;
  // Weighted moments of what was measured: rows, and seconds.
  double mean_rows_ = 0, mean_seconds_ = 0, variance_ = 0, covariance_ = 0;
  double deviation_ = 0; // mean of |measured / expected − 1|
  // Pieces that prepared something: sums of their rows and seconds. The cost is their excess over what the speed says
  // now: at first the speed may be far off.
  struct first_pieces {
    double count = 0, rows = 0, seconds = 0;
  } first_;
};

/// How long a replica has got nothing because it seemed too slow, counted in requests or pieces that it might have got.
/// It is tried again after 16 of them, or 256 if its speed is well known; if it still seems too slow then, after twice
/// as many, and so on: what a slow replica holds up becomes ever less.
class replica_absence {
public:
  void go_on() { ++length_; }
  bool is_long(const replica_speed& known) const { return length_ >= patience_ * (known.is_reliable() ? 16 : 1); }
  /// It got something as others do.
  void end() {
    length_ = 0;
    patience_ = least_patience;
  }
  /// It got something because its absence was long.
  void end_for_trial() {
    length_ = 0;
    patience_ *= 2;
    on_trial_ = true;
  }
  /// Returns whether what it has done now was a trial, once.
  bool take_trial() { return std::exchange(on_trial_, false); }

private:
  static constexpr size_t least_patience = 16;
  size_t length_ = 0, patience_ = least_patience;
  bool on_trial_ = false;
};

} // namespace troupe
