// The trees of an ensemble (ml_trees.cpp), whichever operator's attributes they come from.
#pragma once

#include "graph/attributes.hpp"

namespace troupe {

/// What a node compares its feature with its threshold by. `member`: whether the feature is in the node's set.
enum class branch : uint8_t { leq, lt, gte, gt, eq, neq, member, leaf };

struct tree_node {
  branch mode = branch::leaf;
  bool missing_is_true = false; // where NaN goes
  int64_t feature = 0;
  double threshold = 0;
  size_t yes = 0, no = 0;     // nodes
  size_t first = 0, last = 0; // votes of a leaf; members of a set
};

/// What a leaf adds to a target or class.
struct leaf_vote {
  size_t target = 0;
  double weight = 0;
};

struct forest {
  std::vector<tree_node> nodes;
  std::vector<size_t> roots;
  std::vector<leaf_vote> votes;
  std::vector<double> members;
  size_t targets = 0;

  /// Returns the votes of the leaf that a point of `count` features comes to. Throws `errc::invalid_model` if it comes
  /// to none: nodes lead round in a circle; `errc::invalid_input` if a feature is missing.
  template <class T>
  std::span<const leaf_vote> votes_of(size_t root, const T* x, int64_t count) const;
};

/// Reads attributes nodes_* and, for the leaves, `prefix`_*: TreeEnsembleRegressor (target) and TreeEnsembleClassifier
/// (class).
forest parse_named_nodes(const attributes& attrs, const std::string& prefix, size_t targets);

/// Reads the attributes of TreeEnsemble.
forest parse_numbered_nodes(const attributes& attrs);

/// Returns the numbers of attribute `name`, or of `name`_as_tensor; throws `errc::invalid_model` if both are there.
std::vector<double> numbers_of(const attributes& attrs, const std::string& name);

} // namespace troupe
