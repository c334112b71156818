// Linear models of ai.onnx.ml: LinearRegressor and LinearClassifier.
//
//   scores = x · coefficientsᵀ + intercepts, a row of coefficients for each target or class; then the post-transform
//     (ml_scores.cpp)
// A class is the one of the largest score. Two classes may have one score: the second class where it is positive; their
// scores are then [1 − s, s].
#include "base/checked.hpp"
#include "ops/ml/scores.hpp"
#include "ops/operand.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// The coefficients of one row of scores.
struct linear_model {
  std::vector<float> coefficients, intercepts;
  int64_t scores;

  /// Computes the scores of one point.
  void operator()(const float* x, int64_t features, float* to) const {
    for (int64_t s = 0; s < scores; ++s) {
      const float* row = coefficients.data() + s * features;
      float sum = intercepts.empty() ? 0 : intercepts[static_cast<size_t>(s)];
      for (int64_t i = 0; i < features; ++i)
        sum += x[i] * row[i];
      to[s] = sum;
    }
  }

  void check(int64_t features) const {
    if (checked_mul(scores, features) != std::ssize(coefficients))
      fail(errc::invalid_input, "{} coefficients do not give {} scores of {} features", coefficients.size(), scores,
           features);
  }
};

/// Calls `f(row, scores)` for each point, with room for one score more than the model gives.
template <class F>
void each_row(const kernel_context& c, const linear_model& m, F f) {
  const auto [rows, columns] = rows_of(c.input(0));
  const int64_t features = columns; // clang 14 captures no structured bindings
  m.check(features);
  const read_as<float> x(c.input(0));
  parallel_for(rows, std::max<int64_t>(1, 16 * 1024 / (m.scores * features + 1)), [&](int64_t begin, int64_t end) {
    std::vector<float> scores(static_cast<size_t>(m.scores));
    for (int64_t r = begin; r < end; ++r) {
      m(x.data() + r * features, features, scores.data());
      f(r, std::span(scores));
    }
  });
}

// -- LinearRegressor

linear_model parse_linear_regressor(const attributes& attrs) {
  linear_model m{attrs.reals("coefficients", {}), attrs.reals("intercepts", {}), attrs.integer("targets", 1)};
  if (m.scores < 1 || m.scores > std::ssize(m.coefficients))
    fail(errc::invalid_model, "{} coefficients are not those of {} targets", m.coefficients.size(), m.scores);
  if (!m.intercepts.empty())
    require_count("intercepts", m.intercepts.size(), static_cast<size_t>(m.scores));
  return m;
}

void infer_linear_regressor(infer_context& c) {
  parse_transform(c.attrs());
  c.set_output(0, dtype::float32, row_results(c, parse_linear_regressor(c.attrs()).scores));
}

void regressor(kernel_context& c) {
  const linear_model m = parse_linear_regressor(c.attrs());
  const score_transform how = parse_transform(c.attrs());
  each_row(c, m, [&](int64_t row, std::span<float> scores) {
    transform_targets(how, scores);
    std::copy(scores.begin(), scores.end(), c.output(0).as<float>() + row * m.scores);
  });
}

// -- LinearClassifier

class_labels labels_of(const attributes& attrs) {
  return {attrs, "classlabels_ints", "classlabels_strings"};
}

linear_model parse_linear_classifier(const attributes& attrs, const class_labels& labels) {
  linear_model m{attrs.reals("coefficients", {}), attrs.reals("intercepts", {}), 0};
  m.scores = m.intercepts.empty() ? std::ssize(labels) : std::ssize(m.intercepts);
  if (m.scores != std::ssize(labels) && !(m.scores == 1 && labels.size() == 2))
    fail(errc::invalid_model, "{} intercepts are not for {} classes", m.scores, labels.size());
  return m;
}

void infer_linear_classifier(infer_context& c) {
  parse_transform(c.attrs());
  const class_labels labels = labels_of(c.attrs());
  parse_linear_classifier(c.attrs(), labels);
  set_classes(c, labels, std::ssize(labels));
}

void classifier(kernel_context& c) {
  const class_labels labels = labels_of(c.attrs());
  const linear_model m = parse_linear_classifier(c.attrs(), labels);
  const score_transform how = parse_transform(c.attrs());
  each_row(c, m, [&](int64_t row, std::span<float> scores) {
    const bool single = m.scores < std::ssize(labels);
    const auto best =
        single ? (scores[0] > 0 ? 1 : 0) : std::max_element(scores.begin(), scores.end()) - scores.begin();
    labels.write(c.output(0), row, static_cast<size_t>(best));
    if (!c.has_output(1))
      return;
    float* to = c.output(1).as<float>() + row * std::ssize(labels);
    if (single) {
      const auto both = both_scores(how, single_score::probability, scores[0]);
      std::copy(both.begin(), both.end(), to);
    } else {
      transform_scores(how, scores);
      std::copy(scores.begin(), scores.end(), to);
    }
  });
}

constexpr auto ml_linear_rows = std::to_array<op_def>({
    scorer_row("LinearClassifier", 1, infer_linear_classifier, classifier, feature_types, 2),
    scorer_row("LinearRegressor", 1, infer_linear_regressor, regressor, feature_types),
});

} // namespace

extern constinit const op_table ml_linear_ops = ml_linear_rows;

} // namespace troupe
