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

/// Returns how many of `rows` each replica should get so that all who get some end at the same time, as fractions. If
/// all begin at the same time these are in proportion to the speeds. O(n log n).
std::vector<double> shares_that_end_together(double rows, std::span<const share_figures> replicas);

/// Rounds shares so that they add up to `rows`: largest remainder, ties to the first. Shares below 0 count as 0; if
/// they do not add up to `rows`, their proportions count. O(n log n).
std::vector<int64_t> whole_shares(int64_t rows, std::span<const double> wanted);

/// Returns the rows of the next piece for who has this part of all speeds, between `least` and `most`: half of its part
/// of all that waits, guided self-scheduling (Polychronopoulos & Kuck, IEEE Transactions on Computers 1987), with a
/// factor that leaves room for pieces that take longer than they should. `most` counts if it is below `least`.
int64_t guided_piece(double waiting, double part, int64_t least, int64_t most);

/// Returns the `least` of that for pieces of so many rows, or of any number if it is 0.
int64_t least_piece(int64_t micro_batch);

} // namespace troupe
