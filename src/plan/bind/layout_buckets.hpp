// Which arena layout a binding gets: layouts are made for buckets of the symbols' values and shared by the bindings
// inside.
//
// A segment's first binding is laid out for exactly its values. A later one that no layout holds is compared with the
// most similar binding that got a layout before: symbols with the same value in both stay fixed, those that differ vary
// from here on, with room up to `wide_capacity` if that costs little memory, else up to `bucket_capacity`. Symbols that
// have moved by the same amount (`past` and `total` = past + 1) get the same increment, others are rounded one by one;
// if the model contradicts the one, the other is tried. If all fail, or would cost too much memory, the layout is exact
// again.
//
// Not thread-safe: its owner calls it from one thread at a time.
#pragma once

#include "plan/bind/bound_plan.hpp"
#include "plan/plan_cache.hpp"

#include <deque>

namespace troupe {

/// Returns the capacity for a symbol's value: at least 16, then in steps of a quarter octave (20, 24, 28, 32, 40 …), so
/// that at most a quarter is wasted.
int64_t bucket_capacity(int64_t value);

/// Returns the capacity where memory does not matter but a new layout does: at least 16, a power of two up to
/// `most_doubled`, then as `bucket_capacity`. What a device prepares for a layout takes as long as several steps of a
/// small decoder.
int64_t wide_capacity(int64_t value, int64_t most_doubled = 1024);

/// The layouts of a session (see the top of this file).
class layout_buckets {
public:
  /// Keeps at most `most` (≥ 1) layouts; what was used longest ago goes first.
  explicit layout_buckets(size_t most) : most_(most) {}

  /// Binds `segment` of `p` to `values`, in a layout that is there or a new one. Throws what `make_layout` throws.
  bound_plan_ptr bind(const std::shared_ptr<const plan>& p, uint32_t segment, const bindings& values);

  /// Hits: bindings inside a layout that was there.
  const cache_stats& stats() const { return stats_; }

private:
  /// A binding that got a layout of its own.
  struct precedent {
    std::shared_ptr<const plan> source;
    uint32_t segment = 0;
    std::vector<int64_t> values; // in the order of `symbols_of`
  };

  /// How a binding differs from the most similar precedent.
  struct difference {
    std::vector<std::string> names; // of the symbols; empty if there is no precedent
    bool together = false;          // whether all have moved by the same amount
  };

  bound_plan_ptr find(const plan& p, uint32_t segment, const bindings& values);
  bound_plan_ptr make(const std::shared_ptr<const plan>& p, uint32_t segment, const bindings& values);
  /// Compares a binding with the precedents, and makes it one.
  difference compare(const std::shared_ptr<const plan>& p, uint32_t segment, const bindings& values);

  size_t most_;
  std::list<arena_layout_ptr> layouts_; // used last first
  std::deque<precedent> precedents_;    // newest first
  cache_stats stats_;
};

} // namespace troupe
