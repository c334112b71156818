// Statistics of repeated measurements: how large, how sure, and whether one setting is really faster than another.
//
// Pure functions of samples. Repetition i of one setting is paired with repetition i of the other if both were measured
// in turns (or simulated with the same seed), so that what disturbs both cancels. Two tests look at the pairs:
// Student's assumes differences that are about normal, Wilcoxon's only ones that are symmetric, and no outlier can
// decide it. Samples without scatter, such as a simulation without noise gives, leave nothing to test: then there is no
// probability, and the figures themselves are the answer.
#pragma once

#include "troupe/export.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace troupe::experiments {

/// A range that holds the true value with the confidence that was asked for.
struct interval {
  double low = 0, high = 0;
};

/// What samples of one quantity say, in its unit.
struct summary {
  size_t count = 0;
  double mean = 0;
  double median = 0;    // of an even number the mean of the middle two
  double deviation = 0; // the sample's standard deviation (n − 1); 0 for fewer than two
  double least = 0, largest = 0;
  std::optional<interval> mean_interval; // by Student's t; empty for fewer than two samples
};

/// Returns what samples say; all zero if there are none. `confidence` is above 0 and below 1. Throws
/// `errc::invalid_argument` for others and for samples that are not finite or larger than 1e100.
TROUPE_API summary summarise(std::span<const double> samples, double confidence = 0.95);

/// Student's t-test of the mean of differences `b[i] − a[i]` against 0, from both sides.
struct paired_t {
  size_t pairs = 0;
  double mean_difference = 0;
  std::optional<interval> difference_interval; // empty for fewer than two pairs
  std::optional<double> t;                     // empty as `probability`
  /// That chance alone makes a difference so large; empty for fewer than two pairs or if the differences have no
  /// scatter.
  std::optional<double> probability;
};

/// Tests paired samples of equal number. Source: Student (W. S. Gosset), The probable error of a mean, Biometrika 6,
/// 1908. Throws `errc::invalid_argument` if the numbers differ, for samples as above, and for a wrong confidence.
TROUPE_API paired_t paired_t_test(std::span<const double> a, std::span<const double> b, double confidence = 0.95);

/// Wilcoxon's signed-rank test of the differences `b[i] − a[i]` against a distribution that is symmetric about 0, from
/// both sides.
struct signed_rank {
  size_t pairs = 0;                  // whose difference is not 0; the others say nothing
  double rank_sum_above = 0;         // of the pairs whose `b` is larger
  double rank_sum_below = 0;         // of the others
  bool exact = true;                 // else by the normal distribution, corrected for ties and continuity
  std::optional<double> probability; // empty if there is no pair
};

/// The most pairs whose distribution is counted out: 100 take about a million additions.
inline constexpr size_t max_exact_pairs = 100;

/// Tests paired samples of equal number: F. Wilcoxon, Individual comparisons by ranking methods, Biometrics Bulletin 1,
/// 1945. Differences of equal size share the mean of their ranks, and the distribution is counted for just those ranks.
/// Throws `errc::invalid_argument` if the numbers differ and for samples as above.
TROUPE_API signed_rank wilcoxon_signed_rank(std::span<const double> a, std::span<const double> b);

/// Returns probabilities of several tests made larger, so that all of them together err as rarely as one would: S.
/// Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979. Order and
/// number stay.
TROUPE_API std::vector<double> holm_adjusted(std::span<const double> probabilities);

} // namespace troupe::experiments
