#include "troupe/statistics.hpp"

#include "base/error.hpp"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::experiments {
namespace {

/// Below this part of the samples' size a scatter is rounding.
constexpr double rounding = 1e-12;
/// Squares and sums of samples up to here are finite.
constexpr double largest_sample = 1e100;

void check_confidence(double confidence) {
  if (!(confidence > 0 && confidence < 1))
    fail(errc::invalid_argument, "a confidence of {} is not possible; it is above 0 and below 1, such as 0.95",
         confidence);
}

void check_samples(std::span<const double> samples) {
  for (const double s : samples)
    if (!(std::abs(s) <= largest_sample))
      fail(errc::invalid_argument, "a sample of {} cannot be counted in statistics; samples are at most {}", s,
           largest_sample);
}

/// Returns `b − a`, checked.
std::vector<double> differences(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size())
    fail(errc::invalid_argument, "{} and {} samples cannot be paired; a pair has one of each", a.size(), b.size());
  check_samples(a);
  check_samples(b);
  std::vector<double> d(a.size());
  std::transform(b.begin(), b.end(), a.begin(), d.begin(), std::minus<>());
  return d;
}

double middle_of(std::vector<double> samples) {
  const auto upper = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), upper, samples.end());
  return samples.size() % 2 ? *upper : (*std::max_element(samples.begin(), upper) + *upper) / 2;
}

/// Returns the standard deviation about a known mean; at least two samples.
double deviation_of(std::span<const double> samples, double mean) {
  double sum = 0;
  for (const double s : samples)
    sum += (s - mean) * (s - mean);
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

double largest_size(std::span<const double> samples) {
  double largest = 0;
  for (const double s : samples)
    largest = std::max(largest, std::abs(s));
  return largest;
}

interval t_interval(double mean, double deviation, size_t count, double confidence) {
  const boost::math::students_t t(static_cast<double>(count - 1));
  const double reach = boost::math::quantile(boost::math::complement(t, (1 - confidence) / 2)) * deviation /
                       std::sqrt(static_cast<double>(count));
  return {mean - reach, mean + reach};
}

/// Ranks of differences by size, doubled so that those of ties are whole, and what ties take from the variance.
struct doubled_ranks {
  std::vector<size_t> ranks;
  double tie_sum = 0; // of t³ − t over groups of t equal sizes
};

/// The differences are in order of size.
doubled_ranks rank_by_size(std::span<const double> sorted) {
  doubled_ranks r;
  for (size_t first = 0; first < sorted.size();) {
    size_t end = first + 1;
    while (end < sorted.size() && std::abs(sorted[end]) == std::abs(sorted[first]))
      ++end;
    r.ranks.insert(r.ranks.end(), end - first, first + 1 + end); // twice the mean of ranks first + 1 … end
    const auto ties = static_cast<double>(end - first);
    r.tie_sum += ties * ties * ties - ties;
    first = end;
  }
  return r;
}

/// Returns the probability that random signs give a doubled sum of at most `sum`: one rank after the other joins the
/// sums, or does not.
double exact_tail(std::span<const size_t> ranks, size_t sum) {
  std::vector<double> chance(std::accumulate(ranks.begin(), ranks.end(), size_t{0}) + 1);
  chance[0] = 1;
  size_t reach = 0;
  for (const size_t rank : ranks) {
    reach += rank;
    for (size_t s = reach + 1; s-- > 0;)
      chance[s] = (chance[s] + (s >= rank ? chance[s - rank] : 0)) / 2;
  }
  return std::accumulate(chance.begin(), chance.begin() + static_cast<std::ptrdiff_t>(sum) + 1, 0.0);
}

double normal_tail(double sum, double pairs, double tie_sum) {
  const double mean = pairs * (pairs + 1) / 4;
  const double variance = pairs * (pairs + 1) * (2 * pairs + 1) / 24 - tie_sum / 48;
  return boost::math::cdf(boost::math::normal(), std::min(0.0, sum - mean + 0.5) / std::sqrt(variance));
}

} // namespace

summary summarise(std::span<const double> samples, double confidence) {
  check_confidence(confidence);
  check_samples(samples);
  summary s{.count = samples.size()};
  if (samples.empty())
    return s;
  s.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  s.median = middle_of({samples.begin(), samples.end()});
  const auto [least, largest] = std::minmax_element(samples.begin(), samples.end());
  s.least = *least;
  s.largest = *largest;
  if (samples.size() < 2)
    return s;
  s.deviation = deviation_of(samples, s.mean);
  s.mean_interval = t_interval(s.mean, s.deviation, samples.size(), confidence);
  return s;
}

paired_t paired_t_test(std::span<const double> a, std::span<const double> b, double confidence) {
  check_confidence(confidence);
  const std::vector<double> d = differences(a, b);
  const summary s = summarise(d, confidence);
  paired_t test{.pairs = d.size(), .mean_difference = s.mean, .difference_interval = s.mean_interval};
  if (d.size() < 2 || s.deviation <= rounding * std::max(largest_size(a), largest_size(b)))
    return test;
  const boost::math::students_t t(static_cast<double>(d.size() - 1));
  test.t = s.mean / (s.deviation / std::sqrt(static_cast<double>(d.size())));
  test.probability = 2 * boost::math::cdf(boost::math::complement(t, std::abs(*test.t)));
  return test;
}

signed_rank wilcoxon_signed_rank(std::span<const double> a, std::span<const double> b) {
  std::vector<double> d = differences(a, b);
  std::erase(d, 0.0);
  std::sort(d.begin(), d.end(), [](double x, double y) { return std::abs(x) < std::abs(y); });
  signed_rank test{.pairs = d.size(), .exact = d.size() <= max_exact_pairs};
  if (d.empty())
    return test;
  const doubled_ranks r = rank_by_size(d);
  size_t above = 0, below = 0;
  for (size_t i = 0; i < d.size(); ++i)
    (d[i] > 0 ? above : below) += r.ranks[i];
  test.rank_sum_above = static_cast<double>(above) / 2;
  test.rank_sum_below = static_cast<double>(below) / 2;
  const double tail = test.exact ? exact_tail(r.ranks, std::min(above, below))
                                 : normal_tail(static_cast<double>(std::min(above, below)) / 2,
                                               static_cast<double>(d.size()), r.tie_sum);
  test.probability = std::min(1.0, 2 * tail);
  return test;
}

std::vector<double> holm_adjusted(std::span<const double> probabilities) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t x, size_t y) { return std::pair(probabilities[x], x) < std::pair(probabilities[y], y); });
  std::vector<double> adjusted(probabilities.size());
  double so_far = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    so_far = std::max(so_far, static_cast<double>(order.size() - i) * probabilities[order[i]]);
    adjusted[order[i]] = std::min(1.0, so_far);
  }
  return adjusted;
}

} // namespace troupe::experiments
