// Quantiles of samples, such as times.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe {

/// Returns the sample nearest to quantile `q` (0: the least, 1: the largest); 0 if there are none.
inline double quantile(std::vector<double> samples, double q) {
  if (samples.empty())
    return 0;
  const auto at = samples.begin() + std::lround(q * static_cast<double>(samples.size() - 1));
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

/// Returns the middle one, of two the larger; 0 if there are none.
inline double median(std::vector<double> samples) {
  return quantile(std::move(samples), 0.5);
}

} // namespace troupe
