// How fast a replica is: predicted at first, then by what its pieces took. Exponentially weighted means, so that a few pieces are
// enough to see a replica that has become slow, or fast again.
#pragma once

#include "strategy/stream.hpp"

namespace troupe {

class replica_speed {
public:
  explicit replica_speed(const replica_figures& predicted) : figures_(predicted) {}

  /// Returns the seconds that a piece of so many rows should take.
  double seconds(double rows) const { return figures_.fixed_seconds + rows * figures_.row_seconds; }
  const replica_figures& figures() const { return figures_; }
  /// Returns by what factor a piece may well take longer than `seconds` says: 1 and twice the mean deviation so far.
  double caution() const { return 1 + 2 * deviation_; }

  /// A piece of `rows` took so many seconds.
  void measured(double rows, double seconds);

private:
  replica_figures figures_;
  bool started_ = false;
  // Weighted moments of what was measured: rows, and seconds.
  double mean_rows_ = 0, mean_seconds_ = 0, variance_ = 0, covariance_ = 0;
  double deviation_ = 0; // mean of |measured / expected − 1|
};

} // namespace troupe
