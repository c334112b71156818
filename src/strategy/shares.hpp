// How many rows each of several replicas gets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// When a replica could begin with rows, and what each of them takes.
struct share_figures {
  double begins_after = 0; // seconds; negative: it gets none
  double row_seconds = 0;
};

/// Returns how many of `rows` each replica should get so that all who get some end at the same time, as fractions. If all begin at the
/// same time these are in proportion to the speeds. O(n log n).
std::vector<double> shares_that_end_together(double rows, std::span<const share_figures> replicas);

/// Rounds shares so that they add up to `rows`: largest remainder, ties to the first. Shares below 0 count as 0; if they do not
/// add up to `rows`, their proportions count. O(n log n).
std::vector<int64_t> whole_shares(int64_t rows, std::span<const double> wanted);

} // namespace troupe
