// Ifs whose branches give different ranks: what depends on such a result moves into both branches, if its rank is
// known.
//
// After an If whose result has another rank in each branch nothing can be inferred that reads it. So those readers, and
// what is between the If and them, are copied after the nodes of both branches; what they make are results of the If
// instead. It goes on until every reader has a rank: results that get the same rank in both branches are read outside
// as ever. Readers move in batches that double, because each batch costs a rewrite of both branches. Shape arithmetic
// after a moved node moves too, because outside its elements are unknown before the run. What is left of different
// ranks are outputs of the graph.
//
// An If that says whether a loop goes on (peel.cpp) has such a result, and so has the next such If in its branch. One
// that is inside of others takes in all that depends on it before it is rewritten: looking for what has to move would
// cost several rewrites at each.
//
// What moves may make no sense in one of the branches: an operator that does not take that rank. The model is right as
// long as no run takes this branch, so it is refused in the run that does.
#include "ops/onnx/control.hpp"
#include "ops/op.hpp"
#include "rewrite/control_flow.hpp"

#include <algorithm>
#include <set>

namespace troupe {
namespace {

bool reads(const node& n, const std::set<value_id>& values) {
  return std::any_of(n.inputs.begin(), n.inputs.end(), [&](value_id v) { return values.contains(v); });
}

bool makes(const node& n, const std::set<value_id>& values) {
  return std::any_of(n.outputs.begin(), n.outputs.end(), [&](value_id v) { return values.contains(v); });
}

void add_present(std::set<value_id>& values, const std::vector<value_id>& ids) {
  std::copy_if(ids.begin(), ids.end(), std::inserter(values, values.end()), [](value_id v) { return v != no_value; });
}

/// Copies nodes of a graph after those of a branch of one of its Ifs.
class branch_extension {
public:
  branch_extension(const graph& outer, const node& n, const node_body& branch) : outer_(outer), body_(*branch.program) {
    const auto first = n.inputs.begin() + static_cast<ptrdiff_t>(branch.first_capture);
    captured_from_.assign(first, first + static_cast<ptrdiff_t>(body_.captured.size()));
    for (size_t i = 0; i < captured_from_.size(); ++i)
      inside_[captured_from_[i]] = body_.captured[i];
    for (size_t i = 0; i < n.outputs.size(); ++i)
      if (n.outputs[i] != no_value)
        inside_[n.outputs[i]] = body_.outputs[i];
  }

  void add(node n) {
    for (value_id& v : n.inputs)
      v = v == no_value ? v : in_body(v);
    for (value_id& v : n.outputs)
      if (v != no_value)
        v = inside_[v] = body_.add_value({.name = outer_.values[v].name});
    body_.nodes.push_back(std::move(n));
  }

  /// Returns the branch; its outputs are its own values of `results`.
  graph_ptr finish(const std::vector<value_id>& results) {
    body_.outputs.clear();
    for (value_id v : results)
      body_.outputs.push_back(inside_.at(v));
    return std::make_shared<const graph>(std::move(body_));
  }

  /// The outer values that the branch captures, in the order of its captures.
  const std::vector<value_id>& captured_from() const { return captured_from_; }

private:
  value_id in_body(value_id v) {
    const auto [it, inserted] = inside_.try_emplace(v, no_value);
    if (inserted) {
      const value& given = outer_.values[v];
      it->second = body_.add_value({.name = given.name, .type = given.type, .dims = given.dims});
      body_.inputs.push_back(it->second);
      body_.captured.push_back(it->second);
      captured_from_.push_back(v);
    }
    return it->second;
  }

  const graph& outer_;
  graph body_;
  std::vector<value_id> captured_from_;
  std::map<value_id, value_id> inside_; // by outer value
};

size_t size_of(const node& n) {
  size_t nodes = 1;
  if (has_body(n))
    for (const node_body& body : bodies_of(n))
      nodes += count_nodes(*body.program);
  return nodes;
}

void count_work(int64_t& left, size_t nodes) {
  left -= static_cast<int64_t>(nodes);
  if (left < 0)
    fail(errc::unsupported, "branches give different ranks, and too many nodes depend on which one is taken");
}

/// Branches that are inferred with what has moved into them may be refused as long as this lives.
class guess {
public:
  explicit guess(rewrite_context& context) : context_(context) { ++context_.guesses; }
  ~guess() { --context_.guesses; }
  guess(const guess&) = delete;
  guess& operator=(const guess&) = delete;

private:
  rewrite_context& context_;
};

/// One If on its way to results that the nodes after it can read.
class branch_rewriter {
public:
  branch_rewriter(graph& g, node& n, nodes_ahead& ahead, rewrite_context& context)
      : graph_(g), node_(n), source_(n), pending_(ahead.pending), ahead_(ahead), context_(context) {}

  std::optional<std::vector<node>> run() {
    std::optional<guess> guessed;
    if (node_.attrs.has(iterations_before))
      guessed.emplace(context_);
    const bool all_move = node_.attrs.has(takes_readers);
    if (!all_move)
      rewrite();
    if (!reads_any(open_results())) {
      if (all_move)
        rewrite();
      return std::nullopt;
    }
    if (auto first = take_independent(); !first.empty()) {
      first.push_back(source_);
      return first;
    }
    if (!guessed)
      guessed.emplace(context_);
    for (size_t count = all_move ? pending_.size() : 1; reads_any(barred_results()); count *= 2) {
      count_work(context_.visits_left, pending_.size());
      take_in(take(count));
      node_ = source_;
      rewrite();
    }
    return std::nullopt;
  }

private:
  void rewrite() {
    rewrite_bodies(graph_, node_, context_);
    infer_context c(graph_, node_);
    node_.def->infer(c);
  }

  bool reads_any(const std::set<value_id>& values) const {
    return !values.empty() &&
           std::any_of(pending_.begin(), pending_.end(), [&](const node& n) { return reads(n, values); });
  }

  /// Results whose rank only the run tells.
  std::set<value_id> open_results() const {
    std::set<value_id> open;
    for (value_id v : node_.outputs)
      if (v != no_value && !graph_.values[v].dims)
        open.insert(v);
    return open;
  }

  /// Results that nodes outside cannot be inferred with: those, and what decides shapes.
  std::set<value_id> barred_results() {
    std::set<value_id> barred = open_results();
    swap_pending();
    const std::vector<value_id> found = shape_deciding_values(graph_);
    swap_pending();
    const std::set<value_id> deciding(found.begin(), found.end());
    std::copy_if(node_.outputs.begin(), node_.outputs.end(), std::inserter(barred, barred.end()),
                 [&](value_id v) { return deciding.contains(v); });
    return barred;
  }

  /// Makes the pending nodes those of the graph, in order, and back.
  void swap_pending() {
    std::reverse(pending_.begin(), pending_.end());
    graph_.nodes.swap(pending_);
    std::reverse(pending_.begin(), pending_.end());
  }

  /// Takes the nodes that do not depend on the If out of `pending_`, in order: they go before it, so that they need not
  /// move into it. Done once for each If: two Ifs that wait for each other's readers would go on for ever.
  std::vector<node> take_independent() {
    std::vector<node> independent, dependent;
    if (!ahead_.postponed.insert(*open_results().begin()).second)
      return independent;
    std::set<value_id> reached;
    add_present(reached, source_.outputs);
    for (size_t i = pending_.size(); i-- > 0;)
      if (reads(pending_[i], reached)) {
        add_present(reached, pending_[i].outputs);
        dependent.push_back(std::move(pending_[i]));
      } else {
        independent.push_back(std::move(pending_[i]));
      }
    pending_.assign(std::make_move_iterator(dependent.rbegin()), std::make_move_iterator(dependent.rend()));
    return independent;
  }

  /// Takes the first `count` nodes that depend on what is barred out of `pending_`, and all that these need.
  std::vector<node> take(size_t count) {
    std::vector<char> chosen(pending_.size());
    std::set<value_id> reached = barred_results(), needed;
    for (size_t i = pending_.size(); i-- > 0 && count > 0;)
      if (reads(pending_[i], reached)) {
        chosen[i] = 1;
        add_present(reached, pending_[i].outputs);
        --count;
      }
    for (size_t i = 0; i < pending_.size(); ++i) // from the last node to the next
      if (chosen[i] || makes(pending_[i], needed)) {
        chosen[i] = 1;
        add_present(needed, pending_[i].inputs);
      }
    std::vector<node> taken, left;
    for (size_t i = 0; i < pending_.size(); ++i)
      (chosen[i] ? taken : left).push_back(std::move(pending_[i]));
    pending_ = std::move(left);
    std::reverse(taken.begin(), taken.end());
    return taken;
  }

  /// Moves nodes into both branches of `source_`.
  void take_in(const std::vector<node>& moved) {
    std::set<value_id> read(graph_.outputs.begin(), graph_.outputs.end());
    for (const node& n : pending_)
      read.insert(n.inputs.begin(), n.inputs.end());
    std::vector<value_id> results;
    const auto add_read = [&](const node& n) {
      std::copy_if(n.outputs.begin(), n.outputs.end(), std::back_inserter(results),
                   [&](value_id v) { return v != no_value && read.contains(v); });
    };
    add_read(source_);
    std::for_each(moved.begin(), moved.end(), add_read);

    source_ = extend_branches(graph_, source_, {moved, moved}, std::move(results), context_);
  }

  graph& graph_;
  node& node_;
  node source_; // as in the file, with what has moved into its branches
  std::vector<node>& pending_;
  nodes_ahead& ahead_;
  rewrite_context& context_;
};

} // namespace

node extend_branches(const graph& g, const node& n, const std::array<std::vector<node>, 2>& added,
                     std::vector<value_id> results, rewrite_context& context) {
  node larger = n;
  larger.inputs.resize(n.formal_inputs());
  const std::vector<node_body> branches = bodies_of(n);
  for (const size_t branch : {else_branch, then_branch}) {
    branch_extension extension(g, n, branches.at(branch));
    for (const node& inside : added[branch]) {
      count_work(context.moves_left, size_of(inside));
      extension.add(inside);
    }
    larger.attrs.set(branches[branch].name, extension.finish(results));
    const auto& captured = extension.captured_from();
    larger.inputs.insert(larger.inputs.end(), captured.begin(), captured.end());
  }
  larger.captures = larger.inputs.size() - n.formal_inputs();
  larger.outputs = std::move(results);
  return larger;
}

std::optional<std::vector<node>> rewrite_branches(graph& g, node& n, nodes_ahead& ahead, rewrite_context& context) {
  return branch_rewriter(g, n, ahead, context).run();
}

} // namespace troupe
