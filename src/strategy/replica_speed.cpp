#include "strategy/replica_speed.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

constexpr double newest_weight = 0.5;    // of a measurement, in the means
constexpr double deviation_weight = 0.2; // … in the mean deviation
constexpr double slope_step = 1.25; // by which the part that grows with rows changes at most, beyond what the means say
constexpr double sizes_that_differ = 0.1; // of the mean size: below, fixed and growing part cannot be told apart

} // namespace

double replica_speed::rows_per_second(int64_t rows) const {
  constexpr double least_seconds = 1e-12;
  const auto n = static_cast<double>(rows);
  return n / std::max(seconds(n), least_seconds);
}

void replica_speed::measured(double rows, double seconds) {
  const double expected = this->seconds(rows);
  if (expected > 0)
    deviation_ += deviation_weight * (std::min(1.0, std::abs(seconds / expected - 1)) - deviation_);
  if (++measurements_ == 1) { // the prediction counts as a measurement before
    mean_rows_ = rows;
    mean_seconds_ = expected > 0 ? expected : seconds;
  }
  const double more_rows = rows - mean_rows_, more_seconds = seconds - mean_seconds_;
  mean_rows_ += newest_weight * more_rows;
  mean_seconds_ += newest_weight * more_seconds;
  variance_ = (1 - newest_weight) * (variance_ + newest_weight * more_rows * more_rows);
  covariance_ = (1 - newest_weight) * (covariance_ + newest_weight * more_rows * more_seconds);

  // A piece of the mean size takes the mean time. How much of it grows with rows is a regression's slope if sizes
  // differ; else both parts keep their proportion. While the speed changes, slopes are nonsense, even negative; so they
  // count in small steps.
  const double all_grows = mean_seconds_ / mean_rows_, before = this->seconds(mean_rows_);
  double slope = before > 0 ? figures_.row_seconds * mean_seconds_ / before : all_grows;
  if (std::sqrt(variance_) > sizes_that_differ * mean_rows_) {
    const double least = 0.05 * all_grows; // so that a slope of 0 can grow again
    slope = std::clamp(covariance_ / variance_, slope / slope_step, std::max(slope, least) * slope_step);
  }
  figures_.row_seconds = std::clamp(slope, 0.0, all_grows);
  figures_.fixed_seconds = std::max(0.0, mean_seconds_ - figures_.row_seconds * mean_rows_);
}

void replica_speed::prepared(double rows, double seconds) {
  first_ = {first_.count + 1, first_.rows + rows, first_.seconds + seconds};
}

std::optional<double> replica_speed::size_seconds() const {
  if (first_.count == 0)
    return std::nullopt;
  return std::max(0.0, first_.seconds / first_.count - this->seconds(first_.rows / first_.count));
}

void replica_speed::measured_anew(double rows, double seconds, const replica_figures& predicted) {
  const double expected = predicted.fixed_seconds + rows * predicted.row_seconds;
  const double factor = expected > 0 ? seconds / expected : 1;
  const first_pieces kept = first_;
  *this = replica_speed({predicted.row_seconds * factor, predicted.fixed_seconds * factor});
  first_ = kept;
  measured(rows, seconds);
}

} // namespace troupe
