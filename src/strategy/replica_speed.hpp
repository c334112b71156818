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

  /// Returns the seconds that a piece of `rows` rows should take.
  double seconds(double rows) const { return figures_.seconds(rows); }
  const replica_figures& figures() const { return figures_; }
  /// Returns the rows a second in pieces of `rows` rows; finite.
  double rows_per_second(int64_t rows) const;
  /// Returns whether it is more than a prediction.
  bool is_measured() const { return measurements_ > 0; }
  /// Returns by what factor a piece may well take longer than `seconds` says: 1 and twice the mean deviation so far.
  double caution() const { return 1 + 2 * deviation_; }

  /// A piece took `seconds`, part of it to prepare: as a rule, the first piece with this number of rows.
  void prepared(double rows, double seconds);
  /// Returns what a new number of rows costs beyond the time of the piece, by those so far; empty before the first.
  std::optional<double> size_seconds() const;
  /// What it is thought to cost before any was seen.
  static constexpr double unknown_size_seconds = 0.25;

  /// Called when a piece of `rows` rows took `seconds`.
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

/// How long a replica has got nothing because it seemed too slow: the seconds of work that others did meanwhile. It is
/// tried again when that costs a small part of them, so what a slow replica holds up stays small.
class replica_absence {
public:
  /// Others did this work.
  void go_on(double seconds) { work_seconds_ += seconds; }
  /// Returns whether a trial that takes `trial_seconds` is cheap by now.
  bool is_long(double trial_seconds) const { return trial_seconds < part_for_trials * work_seconds_; }
  /// It got something as others do.
  void end() { work_seconds_ = 0; }
  /// It got something because its absence was long.
  void end_for_trial() {
    work_seconds_ = 0;
    on_trial_ = true;
  }
  /// Returns whether what it has done now was a trial, once.
  bool take_trial() { return std::exchange(on_trial_, false); }

private:
  static constexpr double part_for_trials = 1.0 / 16;
  double work_seconds_ = 0;
  bool on_trial_ = false;
};

} // namespace troupe
