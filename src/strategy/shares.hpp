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

/// Returns the greatest rung of the ladder 1, 2, 3, 4, 6, 8, 12, 16, … (powers of two and the halves between) that is
/// at most `rows`; 0 if `rows` is below 1.
int64_t ladder_floor(int64_t rows);

/// One row in this many is little. Requests of no more rows get the best shares of the moment, which have few sizes.
inline constexpr int64_t few_rows = 8;

/// Returns the step by which shares of `rows` differ from equal ones: the greatest power of two that is at most an
/// equal share divided by `few_rows`; at least 1.
int64_t share_step(int64_t rows, size_t replicas);

/// Rounds shares that add up to `rows` so that few numbers of rows occur. All but the largest are an equal share and
/// whole steps (`share_step`) or, if requests have `many_sizes`, rungs of the ladder; the largest takes the rest.
std::vector<int64_t> stepped_shares(int64_t rows, std::span<const double> wanted, bool many_sizes);

/// What waits for `stealing`, and what pieces of it may have.
struct guided_rows {
  double waiting = 0; // of all requests
  int64_t left = 0;   // of the request that is cut
  int64_t least = 1, most = 1;
};

/// Returns the rows of the next piece for who has this part of all speeds. They are half of its part of all that waits,
/// guided self-scheduling (Polychronopoulos & Kuck, IEEE Transactions on Computers 1987), with a factor that leaves
/// room for pieces that take longer than they should. They are rounded down to `most` or a rung of the ladder that
/// leaves nothing of the request or at least `least`. A rung of at least half as many rows that is among `known` goes
/// before larger ones that are not. The end of a request may be smaller than `least`.
int64_t guided_piece(const guided_rows& rows, double part, std::span<const int64_t> known = {});

/// Returns the `least` of that for pieces of `micro_batch` rows, or of any number of rows if it is 0.
int64_t least_piece(int64_t micro_batch);

} // namespace troupe
