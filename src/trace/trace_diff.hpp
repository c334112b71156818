// Two traces of one model, side by side: what moved, what got slower or faster, what only one has.
#pragma once

#include "trace/timeline.hpp"

namespace troupe {

/// Nodes or moves of one kind, name and operator, in one trace: all executions together, as a loop's body has many.
struct diffed_side {
  double total_ns = 0;
  size_t count = 0;
  std::string lane; // where it took most
};

/// What both traces have.
struct diffed_pair {
  bar_kind kind = bar_kind::node;
  std::string name, op;
  diffed_side a, b;

  double delta_ns() const { return b.total_ns - a.total_ns; }
  bool moved() const { return a.lane != b.lane; }
};

/// What one has.
struct diffed_single {
  bar_kind kind = bar_kind::node;
  std::string name, op;
  diffed_side side;
};

/// A lane, matched by its name.
struct diffed_lane {
  std::string name;
  double busy_a_ns = 0, busy_b_ns = 0;
};

/// See the top of this file. All lists are sorted by what they changed, most first.
struct trace_diff {
  double a_ns = 0, b_ns = 0;               // the whole
  std::vector<diffed_lane> lanes;          // in the order of a, then what only b has
  std::vector<diffed_pair> moved;          // that took most on another lane
  std::vector<diffed_pair> slower, faster; // in b; those that moved too
  size_t unchanged = 0;                    // to the nanosecond
  std::vector<diffed_single> only_a, only_b;
};

/// Compares two traces. Time is O(n log n).
trace_diff diff_of(const timeline& a, const timeline& b);

} // namespace troupe
