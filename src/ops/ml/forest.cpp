// Reading trees, and walking them. Attributes come from files: every index is checked here, so that walks need not.
#include "ops/ml/forest.hpp"

#include "ops/ml/scores.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace troupe {
namespace {

std::vector<int64_t> list_of(const attributes& attrs, const std::string& name, size_t count) {
  auto list = attrs.integers(name, {});
  require_count(name, list.size(), count);
  return list;
}

/// The same for an attribute that may be left out: zeros.
std::vector<int64_t> flags_of(const attributes& attrs, const std::string& name, size_t count) {
  auto list = attrs.integers(name, {});
  if (list.empty())
    list.resize(count);
  require_count(name, list.size(), count);
  return list;
}

size_t checked_index(const std::string& name, int64_t index, size_t bound) {
  if (index < 0 || static_cast<size_t>(index) >= bound)
    fail(errc::invalid_model, "attribute '{}' has {}, but there are {}", name, index, bound);
  return static_cast<size_t>(index);
}

branch branch_called(const std::string& name) {
  static const std::map<std::string, branch, std::less<>> names{
      {"BRANCH_LEQ", branch::leq}, {"BRANCH_LT", branch::lt},   {"BRANCH_GTE", branch::gte}, {"BRANCH_GT", branch::gt},
      {"BRANCH_EQ", branch::eq},   {"BRANCH_NEQ", branch::neq}, {"LEAF", branch::leaf}};
  const auto found = names.find(name);
  if (found == names.end())
    fail(errc::invalid_model, "attribute 'nodes_modes' has '{}', which is none", name);
  return found->second;
}

/// Nodes by the numbers of tree and node.
using node_numbers = std::map<std::pair<int64_t, int64_t>, size_t>;

size_t numbered(const node_numbers& numbers, int64_t tree, int64_t node) {
  const auto found = numbers.find({tree, node});
  if (found == numbers.end())
    fail(errc::invalid_model, "tree {} has no node {}", tree, node);
  return found->second;
}

/// Returns how many nodes a root leads to, itself included.
size_t reached(const forest& f, size_t root, std::vector<bool>& seen) {
  size_t count = 0;
  for (std::vector<size_t> open{root}; !open.empty();) {
    const size_t at = open.back();
    open.pop_back();
    if (seen[at])
      continue;
    seen[at] = true;
    ++count;
    if (f.nodes[at].mode != branch::leaf)
      open.insert(open.end(), {f.nodes[at].yes, f.nodes[at].no});
  }
  return count;
}

/// A tree's root is the one node that no other one leads to; it leads to all others.
void find_roots(forest& f, const std::vector<int64_t>& trees) {
  std::vector<bool> is_child(f.nodes.size()), seen(f.nodes.size());
  for (const tree_node& n : f.nodes)
    if (n.mode != branch::leaf)
      is_child[n.yes] = is_child[n.no] = true;
  struct found {
    size_t nodes = 0, roots = 0, root = 0;
  };
  std::map<int64_t, found> all;
  for (size_t i = 0; i < f.nodes.size(); ++i) {
    found& tree = all[trees[i]];
    ++tree.nodes;
    if (!is_child[i] && tree.roots++ == 0)
      tree.root = i;
  }
  for (const auto& [number, tree] : all) {
    if (tree.roots != 1)
      fail(errc::invalid_model, "tree {} has {} roots", number, tree.roots);
    if (reached(f, tree.root, seen) != tree.nodes)
      fail(errc::invalid_model, "tree {} has nodes that its root does not lead to", number);
    f.roots.push_back(tree.root);
  }
}

/// Gives each leaf its votes.
void read_votes(forest& f, const attributes& attrs, const std::string& prefix, const node_numbers& numbers) {
  const auto weights = numbers_of(attrs, prefix + "_weights");
  const auto nodes = list_of(attrs, prefix + "_nodeids", weights.size()),
             trees = list_of(attrs, prefix + "_treeids", weights.size()),
             targets = list_of(attrs, prefix + "_ids", weights.size());
  std::vector<std::pair<size_t, leaf_vote>> all;
  for (size_t i = 0; i < weights.size(); ++i)
    all.emplace_back(numbered(numbers, trees[i], nodes[i]),
                     leaf_vote{checked_index(prefix + "_ids", targets[i], f.targets), weights[i]});
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < all.size(); ++i) {
    tree_node& leaf = f.nodes[all[i].first];
    if (leaf.mode != branch::leaf)
      continue; // a vote of a node that is none is never asked for
    if (leaf.last == 0)
      leaf.first = i;
    leaf.last = i + 1;
  }
  for (const auto& [node, vote] : all)
    f.votes.push_back(vote);
}

/// Finds where each node's set begins and ends among the members; a NaN follows each set.
void read_sets(forest& f, const attributes& attrs) {
  if (attrs.has("membership_values"))
    f.members = to_double(attrs.tensor_value("membership_values").view());
  size_t at = 0;
  for (tree_node& n : f.nodes) {
    if (n.mode != branch::member)
      continue;
    if (at > f.members.size())
      fail(errc::invalid_model, "attribute 'membership_values' has fewer sets than there are nodes for them");
    n.first = at;
    while (at < f.members.size() && !std::isnan(f.members[at]))
      ++at;
    n.last = at++;
  }
}

/// Throws if walks from the roots can meet one of the `inner` first nodes in two ways: no tree, and walks of a small
/// file would not end.
void check_trees(const forest& f, size_t inner) {
  std::vector<bool> seen(inner);
  for (std::vector<size_t> open(f.roots); !open.empty();) {
    const size_t at = open.back();
    open.pop_back();
    if (at >= inner) // a leaf, which nodes may share
      continue;
    if (seen[at])
      fail(errc::invalid_model, "two roots or nodes lead to node {}", at);
    seen[at] = true;
    open.push_back(f.nodes[at].yes);
    if (f.nodes[at].no != f.nodes[at].yes)
      open.push_back(f.nodes[at].no);
  }
}

} // namespace

std::vector<double> numbers_of(const attributes& attrs, const std::string& name) {
  const std::string as_tensor = name + "_as_tensor";
  const auto list = attrs.reals(name, {});
  if (!attrs.has(as_tensor))
    return {list.begin(), list.end()};
  if (!list.empty())
    fail(errc::invalid_model, "attributes '{}' and '{}' are both there", name, as_tensor);
  return to_double(attrs.tensor_value(as_tensor).view());
}

forest parse_named_nodes(const attributes& attrs, const std::string& prefix, size_t targets) {
  forest f;
  f.targets = targets;
  const auto modes = attrs.texts("nodes_modes", {});
  const size_t count = modes.size();
  const auto trees = list_of(attrs, "nodes_treeids", count), ids = list_of(attrs, "nodes_nodeids", count),
             features = list_of(attrs, "nodes_featureids", count), yes = list_of(attrs, "nodes_truenodeids", count),
             no = list_of(attrs, "nodes_falsenodeids", count),
             missing = flags_of(attrs, "nodes_missing_value_tracks_true", count);
  const auto thresholds = numbers_of(attrs, "nodes_values");
  require_count("nodes_values", thresholds.size(), count);
  node_numbers numbers;
  for (size_t i = 0; i < count; ++i)
    if (!numbers.try_emplace({trees[i], ids[i]}, i).second)
      fail(errc::invalid_model, "tree {} has node {} twice", trees[i], ids[i]);
  for (size_t i = 0; i < count; ++i) {
    tree_node n{branch_called(modes[i]), missing[i] != 0, features[i], thresholds[i]};
    if (n.mode != branch::leaf) {
      n.yes = numbered(numbers, trees[i], yes[i]);
      n.no = numbered(numbers, trees[i], no[i]);
    }
    f.nodes.push_back(n);
  }
  find_roots(f, trees);
  read_votes(f, attrs, prefix, numbers);
  return f;
}

forest parse_numbered_nodes(const attributes& attrs) {
  forest f;
  const int64_t targets = attrs.integer("n_targets", 1);
  const auto modes = to_int64(attrs.tensor_value("nodes_modes").view());
  const auto splits = to_double(attrs.tensor_value("nodes_splits").view()),
             weights = to_double(attrs.tensor_value("leaf_weights").view());
  const size_t inner = modes.size(), leaves = weights.size();
  const auto features = list_of(attrs, "nodes_featureids", inner), yes = list_of(attrs, "nodes_truenodeids", inner),
             no = list_of(attrs, "nodes_falsenodeids", inner), yes_leaf = list_of(attrs, "nodes_trueleafs", inner),
             no_leaf = list_of(attrs, "nodes_falseleafs", inner), of = list_of(attrs, "leaf_targetids", leaves),
             missing = flags_of(attrs, "nodes_missing_value_tracks_true", inner);
  require_count("nodes_splits", splits.size(), inner);
  if (targets < 1)
    fail(errc::invalid_model, "{} targets", targets);
  f.targets = static_cast<size_t>(targets);
  // Leaves come after the other nodes, each with one vote.
  const auto place = [&](const char* name, int64_t index, bool leaf) {
    return checked_index(name, index, leaf ? leaves : inner) + (leaf ? inner : 0);
  };
  for (size_t i = 0; i < inner; ++i) {
    const size_t mode = checked_index("nodes_modes", modes[i], size_t(branch::leaf));
    f.nodes.push_back({static_cast<branch>(mode), missing[i] != 0, features[i], splits[i],
                       place("nodes_truenodeids", yes[i], yes_leaf[i] != 0),
                       place("nodes_falsenodeids", no[i], no_leaf[i] != 0)});
  }
  read_sets(f, attrs);
  for (size_t i = 0; i < leaves; ++i) {
    tree_node leaf;
    leaf.first = i;
    leaf.last = i + 1;
    f.nodes.push_back(leaf);
    f.votes.push_back({checked_index("leaf_targetids", of[i], f.targets), weights[i]});
  }
  for (const int64_t root : attrs.integers("tree_roots", {}))
    f.roots.push_back(checked_index("tree_roots", root, inner));
  check_trees(f, inner);
  return f;
}

template <class T>
std::span<const leaf_vote> forest::votes_of(size_t root, const T* x, int64_t count) const {
  size_t at = root;
  for (size_t steps = 0; nodes[at].mode != branch::leaf; ++steps) {
    const tree_node& n = nodes[at];
    if (n.feature < 0 || n.feature >= count)
      fail(errc::invalid_input, "a tree asks for feature {} of {}", n.feature, count);
    if (steps > nodes.size())
      fail(errc::invalid_model, "a tree's nodes lead round in a circle");
    const auto value = static_cast<double>(x[n.feature]);
    bool yes = n.missing_is_true && std::isnan(value);
    switch (n.mode) {
      case branch::leq: yes = yes || value <= n.threshold; break;
      case branch::lt: yes = yes || value < n.threshold; break;
      case branch::gte: yes = yes || value >= n.threshold; break;
      case branch::gt: yes = yes || value > n.threshold; break;
      case branch::eq: yes = yes || value == n.threshold; break;
      case branch::neq: yes = yes || value != n.threshold; break;
      case branch::member:
        yes = yes || std::find(members.begin() + static_cast<ptrdiff_t>(n.first),
                               members.begin() + static_cast<ptrdiff_t>(n.last),
                               value) != members.begin() + static_cast<ptrdiff_t>(n.last);
        break;
      case branch::leaf: break;
    }
    at = yes ? n.yes : n.no;
  }
  return std::span(votes).subspan(nodes[at].first, nodes[at].last - nodes[at].first);
}

template std::span<const leaf_vote> forest::votes_of(size_t, const float*, int64_t) const;
template std::span<const leaf_vote> forest::votes_of(size_t, const double*, int64_t) const;

} // namespace troupe
