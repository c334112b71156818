// Ensembles of decision trees of ai.onnx.ml: TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier.
//
// Each tree leads a point to a leaf, whose weights are votes for targets or classes. The votes of all trees are summed
// up (or averaged, or the least or largest one counts), base values are added, then comes the post-transform
// (ml_scores.cpp). A class is the one of the largest score among those that have votes or base values. If only one of
// two classes ever gets votes, and there are no base values for both, its score is that of the second class: a
// probability if no weight is negative, else a margin.
#include "base/checked.hpp"
#include "ops/infer.hpp"
#include "ops/ml/forest.hpp"
#include "ops/ml/scores.hpp"
#include "ops/operand.hpp"

#include <algorithm>

namespace troupe {
namespace {

enum class aggregation : uint8_t { average, sum, least, largest };

struct ensemble {
  forest trees;
  aggregation how = aggregation::sum;
  score_transform transform = score_transform::none;
  std::vector<double> base; // empty, one or as many as there are targets
};

/// The score of a target, and whether any leaf had a vote for it.
template <class C>
struct target_score {
  C value = 0;
  bool voted = false;
};

template <class C>
void vote(target_score<C>& score, C weight, aggregation how) {
  if (how == aggregation::least)
    score.value = score.voted ? std::min(score.value, weight) : weight;
  else if (how == aggregation::largest)
    score.value = score.voted ? std::max(score.value, weight) : weight;
  else
    score.value += weight;
  score.voted = true;
}

/// Calls `f(row, scores)` for each point, before base values and transforms.
template <class C, class F>
void each_point(const kernel_context& c, const ensemble& m, F f) {
  const auto [rows, features] = rows_of(c.input(0));
  const read_as<C> x(c.input(0));
  const auto trees = std::ssize(m.trees.roots);
  parallel_for(rows, std::max<int64_t>(1, 1024 / (trees + 1)), [&, count = features](int64_t begin, int64_t end) {
    std::vector<target_score<C>> scores(m.trees.targets);
    for (int64_t r = begin; r < end; ++r) {
      std::fill(scores.begin(), scores.end(), target_score<C>{});
      for (const size_t root : m.trees.roots)
        for (const leaf_vote& v : m.trees.votes_of(root, x.data() + r * count, count))
          vote(scores[v.target], static_cast<C>(v.weight), m.how);
      if (m.how == aggregation::average)
        for (auto& s : scores)
          s.value /= static_cast<C>(trees);
      f(r, scores);
    }
  });
}

/// Calls `f(type_tag<C>{})` with the type that features are compared and votes are summed in.
template <class F>
void visit_features(dtype type, F f) {
  type == dtype::float64 || type == dtype::int64 ? f(type_tag<double>{}) : f(type_tag<float>{});
}

// -- targets: TreeEnsemble, TreeEnsembleRegressor

template <class C>
void predict(kernel_context& c, const ensemble& m) {
  write_as<C> y(c.output(0));
  const size_t targets = m.trees.targets;
  each_point<C>(c, m, [&](int64_t row, const std::vector<target_score<C>>& scores) {
    C* to = y.data() + row * static_cast<int64_t>(targets);
    for (size_t t = 0; t < targets; ++t)
      to[t] = scores[t].value + (m.base.size() == targets ? static_cast<C>(m.base[t]) : 0);
    transform_targets(m.transform, std::span(to, targets));
  });
  y.commit();
}

/// Results are as many as a file says: no more of them than this for a point.
constexpr int64_t most_targets = int64_t{1} << 20;

aggregation parse_aggregation(const attributes& attrs) {
  return word_as<aggregation>(attrs, "aggregate_function", "SUM", {"AVERAGE", "SUM", "MIN", "MAX"});
}

ensemble parse_regressor(const attributes& attrs) {
  const int64_t targets = attrs.integer("n_targets", 1);
  if (targets < 1 || targets > most_targets)
    fail(errc::invalid_model, "{} targets; 1 to {} are possible", targets, most_targets);
  return {parse_named_nodes(attrs, "target", static_cast<size_t>(targets)), parse_aggregation(attrs),
          parse_transform(attrs), numbers_of(attrs, "base_values")};
}

void infer_regressor(infer_context& c) {
  c.set_output(0, dtype::float32, row_results(c, static_cast<int64_t>(parse_regressor(c.attrs()).trees.targets)));
}

void tree_regressor(kernel_context& c) {
  const ensemble m = parse_regressor(c.attrs());
  visit_features(c.input(0).type, [&]<class T>(type_tag<T>) { predict<T>(c, m); });
}

ensemble parse_ensemble(const attributes& attrs) {
  const int64_t how = attrs.integer("aggregate_function", 1), transform = attrs.integer("post_transform", 0);
  if (how < 0 || how > 3)
    fail(errc::invalid_model, "attribute 'aggregate_function' is {}, not 0 to 3", how);
  if (transform < 0 || transform > 4)
    fail(errc::invalid_model, "attribute 'post_transform' is {}, not 0 to 4", transform);
  if (attrs.integer("n_targets", 1) > most_targets)
    fail(errc::invalid_model, "{} targets; 1 to {} are possible", attrs.integer("n_targets", 1), most_targets);
  return {parse_numbered_nodes(attrs), static_cast<aggregation>(how), static_cast<score_transform>(transform), {}};
}

void infer_ensemble(infer_context& c) {
  c.set_output(0, c.type(0), row_results(c, static_cast<int64_t>(parse_ensemble(c.attrs()).trees.targets)));
}

void tree_ensemble(kernel_context& c) {
  const ensemble m = parse_ensemble(c.attrs());
  visit_features(c.input(0).type, [&]<class T>(type_tag<T>) { predict<T>(c, m); });
}

// -- TreeEnsembleClassifier

struct tree_classes {
  class_labels labels;
  ensemble m;
  /// Of two classes only one ever gets votes, and the other one has no base value either.
  bool one_of_two;
  single_score meaning;
};

tree_classes parse_classifier(const attributes& attrs) {
  class_labels labels(attrs, "classlabels_int64s", "classlabels_strings");
  ensemble m{parse_named_nodes(attrs, "class", labels.size()), aggregation::sum, parse_transform(attrs),
             numbers_of(attrs, "base_values")};
  if (m.base.size() > 1)
    require_count("base_values", m.base.size(), labels.size());
  const auto& votes = m.trees.votes;
  const bool same =
      std::all_of(votes.begin(), votes.end(), [&](const leaf_vote& v) { return v.target == votes[0].target; });
  const bool positive = std::all_of(votes.begin(), votes.end(), [](const leaf_vote& v) { return v.weight >= 0; });
  const bool one_of_two = labels.size() == 2 && same && !votes.empty() && m.base.size() < 2;
  return {std::move(labels), std::move(m), one_of_two, positive ? single_score::probability : single_score::margin};
}

void infer_classifier(infer_context& c) {
  const tree_classes m = parse_classifier(c.attrs());
  set_classes(c, m.labels, std::ssize(m.labels));
}

/// Adds the base values, and returns the class of the largest score.
template <class C>
size_t best_class(std::vector<target_score<C>>& scores, const std::vector<double>& base) {
  std::optional<size_t> best;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (base.size() == scores.size()) {
      scores[i].value += static_cast<C>(base[i]);
      scores[i].voted = true;
    }
    if (scores[i].voted && (!best || scores[i].value > scores[*best].value))
      best = i;
  }
  return best.value_or(0);
}

template <class C>
void classify(kernel_context& c, const tree_classes& m) {
  const auto classes = std::ssize(m.labels);
  each_point<C>(c, m.m, [&](int64_t row, std::vector<target_score<C>>& scores) {
    std::vector<C> results;
    size_t label = 0;
    if (m.one_of_two) {
      const size_t voted = m.m.trees.votes[0].target;
      C score = scores[voted].value;
      if (!m.m.base.empty())
        score += static_cast<C>(m.m.base[0]);
      label = score > (m.meaning == single_score::probability ? C(0.5) : C(0)) ? 1 : 0;
      if (voted == 0) {
        const auto both = both_scores(m.m.transform, m.meaning, score);
        results.assign(both.begin(), both.end());
      } else { // the first class has none
        results = {0, score};
        transform_scores(m.m.transform, std::span(results));
      }
    } else {
      label = best_class(scores, m.m.base);
      for (const auto& s : scores)
        results.push_back(s.value);
      transform_scores(m.m.transform, std::span(results));
    }
    m.labels.write(c.output(0), row, label);
    if (c.has_output(1))
      std::transform(results.begin(), results.end(), c.output(1).as<float>() + row * classes,
                     [](C s) { return static_cast<float>(s); });
  });
}

void tree_classifier(kernel_context& c) {
  const tree_classes m = parse_classifier(c.attrs());
  visit_features(c.input(0).type, [&]<class T>(type_tag<T>) { classify<T>(c, m); });
}

constexpr auto ml_tree_rows = std::to_array<op_def>({
    scorer_row("TreeEnsemble", 5, infer_ensemble, tree_ensemble,
               set_of(dtype::float32, dtype::float64, dtype::float16)),
    scorer_row("TreeEnsembleClassifier", 1, infer_classifier, tree_classifier, feature_types, 2),
    scorer_row("TreeEnsembleRegressor", 1, infer_regressor, tree_regressor, feature_types),
});

} // namespace

extern constinit const op_table ml_trees_ops = ml_tree_rows;

} // namespace troupe
