// Measured times of nodes on a device: seconds by all that decides a node's time there, and, for nodes that were not
// measured, how much longer than the roofline their operator took.
//
// `troupe profile MODEL --keep` measures them, the profile file keeps them. A table is immutable and shared by the
// copies of a device's profile, so it may be read from any thread.
#pragma once

#include "graph/graph.hpp"

#include <map>
#include <span>
#include <tuple>
#include <unordered_map>

namespace troupe {

struct call_shapes;

/// Most nodes and operators that are kept of a device, and the longest name of an operator.
inline constexpr size_t max_kept_nodes = 20'000;
inline constexpr size_t max_kept_operators = 1'000;
inline constexpr size_t max_operator_name = 200;

/// What measured times of a node are found by.
struct node_identity {
  /// Of operator, row, attributes, and the operands' types, dims and constness; neither names, layouts nor weights'
  /// elements count, so a model's equal layers share it.
  hash128 key;
  std::string op; // `operator_name`
  /// Of the same, but for the leading dims of operands that are not constants: calls of one family differ in how
  /// many rows they have …
  hash128 family;
  /// … which is this: the leading dim of the first output that has dims.
  int64_t rows = 1;
};

/// Returns the identity of a call of `program`'s node `n` with operands of these types and shapes.
node_identity identity_of(const graph& program, const node& n, const call_shapes& call);

/// The least time by the roofline that ratios count with: the roofline gives tiny nodes almost no time, and what they
/// take beyond that says nothing about large nodes.
inline constexpr double least_roofline_s = 1e-6;

/// Sums over the nodes of one operator that were measured. Sums and not their ratio, so that a model of tiny nodes does
/// not undo what a large one showed.
struct operator_times {
  double measured_s = 0;
  double roofline_s = 0; // of each at least `least_roofline_s`

  double ratio() const { return measured_s / roofline_s; }
  bool operator==(const operator_times&) const = default;
};

/// Returns whether the ratio says something: neither sum is 0 nor a million times the other.
bool is_sane_ratio(const operator_times& sums);

/// What a call took at one number of rows, for those that were measured at others.
struct rows_time {
  hash128 family;
  int64_t rows = 1;
  double seconds = 0;
  double roofline_s = 0; // at least `least_roofline_s`
  double spread =
      0; // half of what the middle four fifths of the samples cover, over `seconds`; also what measurements differed by

  /// Returns what it is found by: there is one for each family and number of rows.
  auto place() const { return std::tuple(family.high, family.low, rows); }
  bool operator==(const rows_time&) const = default;
};

/// Measurements of one device, plain data as a file keeps them.
struct measured_nodes {
  std::vector<std::pair<hash128, double>> nodes;   // by key: seconds, barriers aside; the oldest first
  std::map<std::string, operator_times> operators; // by name
  std::vector<rows_time> rows;                     // one for each family and number of rows; the oldest first

  bool empty() const { return nodes.empty() && operators.empty(); }
  bool operator==(const measured_nodes&) const = default;
};

/// Returns both: a node's time in `fresh` instead of the one in `old`, an operator's sums in `fresh` with half of those
/// in `old`. Of more than `max_kept_nodes`, the oldest are dropped. What two measurements differ by counts as spread;
/// that of the old one fades.
measured_nodes merge(measured_nodes old, measured_nodes fresh);

/// See the top of this file.
class node_times {
public:
  /// Throws `errc::invalid_argument`, naming it, for what cannot be a time, a ratio or a name, and for too many of
  /// them.
  explicit node_times(const measured_nodes& measured);

  /// Returns a node's seconds if the roofline says `roofline_s`: as measured; else between what fewer and more rows
  /// took, beyond those as the roofline goes on from the nearest; else as its operator was, else `roofline_s`.
  double seconds(const node_identity& which, double roofline_s) const;

  /// Returns the table of a device on which each node takes `factor` (above 0) times as long.
  node_times scaled(double factor) const;

  /// Returns a hash of the content.
  const hash128& key() const { return key_; }

private:
  std::unordered_map<hash128, double> nodes_;
  std::unordered_map<hash128, std::map<int64_t, rows_time>> families_;
  std::unordered_map<std::string, double> operators_;
  hash128 key_;
};

} // namespace troupe
