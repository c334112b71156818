// The shares that requests of a stream are cut into, so that replicas see few numbers of rows: one that a replica has
// not run before costs it a plan, recorded commands and compiled kernels.
//
// Shares differ in steps (`stepped_shares`). Requests of as many rows as an earlier one get its shares until others
// would have saved more than their new numbers of rows cost: what was lost by staying is added up from request to
// request, as in the ski rental problem, so at most about twice as much is lost as by the best choice in hindsight. Of
// what a request would save a twentieth does not count: times are never exact. After four kinds of shares each new one
// must save twice as much as the one before.
//
// If replicas are busy with something else, one request may get other shares: such as were given before, or new ones
// that end it earlier by more than they cost. Requests of a few rows always do (`few_rows`).
//
// If requests come with more than four numbers of rows, shares are rungs of a ladder that all of them have in common,
// and the same replica takes what is left.
#pragma once

#include "strategy/shares.hpp"

#include <cstddef>
#include <optional>

namespace troupe {

/// What counts of a replica when shares are made.
struct sharing_replica {
  share_figures idle{.begins_after = -1}, now{.begins_after = -1}; // if it had nothing to do, and as it is
  bool rests = false;                 // takes part only if the others would not end a request within …
  double take_over_seconds = 0;       // … these seconds
  std::optional<double> size_seconds; // that a new number of rows costs; empty if none was seen
  std::span<const int64_t> sizes;     // numbers of rows that it has run
};

/// See the top of this file.
class steady_shares {
public:
  /// Returns the shares of a request with `rows` rows; at least one replica takes some.
  std::vector<int64_t> next(int64_t rows, std::span<const sharing_replica> replicas);
  /// Returns shares as near to `given` as may be in which a replica that has none gets some: such as it had before, the
  /// smallest of them, or a step.
  std::vector<int64_t> with(size_t replica, int64_t rows, std::vector<int64_t> given) const;
  /// Forgets all shares: there are other replicas now.
  void forget() { kept_.clear(); }

private:
  using shares = std::vector<int64_t>;

  /// What requests with one number of rows get.
  struct kept {
    int64_t rows = 0;
    shares last;
    std::vector<shares> had; // all that they have had
    double lost_seconds = 0; // by `last`, since others were better
  };

  kept& kept_for(int64_t rows);

  std::vector<kept> kept_; // oldest first
  bool many_sizes_ = false;
};

} // namespace troupe
