// Support vector machines of ai.onnx.ml: SVMRegressor and SVMClassifier.
//
//   kernels of x and v: LINEAR x·v   POLY (γ x·v + c)^d   RBF exp(−γ |x − v|²)   SIGMOID tanh(γ x·v + c), with
//     kernel_params γ, c, d
//   SVMRegressor: Σ coefficient · kernel(x, v) + rho; with one_class its sign
//   SVMClassifier: each pair of classes i < j has the score Σ over their vectors of coefficient · kernel + rho, where
//     the coefficients of i's vectors are in row j − 1, those of j's in row i; i gets a vote if it is positive, else j.
//     With prob_a and prob_b the scores are probabilities of each class, joined from those of the pairs (Wu, Lin and
//     Weng, "Probability estimates for multi-class classification by pairwise coupling", 2004, its second approach).
// Without support vectors the coefficients are those of linear scores, and rho[0] is added to each.
#include "base/checked.hpp"
#include "ops/infer.hpp"
#include "ops/ml/scores.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

// -- kernels

enum class svm_kernel : uint8_t { linear, poly, rbf, sigmoid };

struct kernel_rule {
  svm_kernel kind = svm_kernel::linear;
  float gamma = 0, offset = 0, degree = 0;

  float operator()(const float* x, const float* v, int64_t count) const {
    float sum = 0;
    for (int64_t i = 0; i < count; ++i)
      sum += kind == svm_kernel::rbf ? (x[i] - v[i]) * (x[i] - v[i]) : x[i] * v[i];
    switch (kind) {
      case svm_kernel::linear: return sum;
      case svm_kernel::poly: return std::pow(gamma * sum + offset, degree);
      case svm_kernel::rbf: return std::exp(-gamma * sum);
      case svm_kernel::sigmoid: return std::tanh(gamma * sum + offset);
    }
    return sum;
  }
};

kernel_rule parse_kernel(const attributes& attrs) {
  kernel_rule rule{word_as<svm_kernel>(attrs, "kernel_type", "LINEAR", {"LINEAR", "POLY", "RBF", "SIGMOID"})};
  if (const auto params = attrs.reals("kernel_params", {}); !params.empty()) {
    require_count("kernel_params", params.size(), 3);
    rule.gamma = params[0];
    rule.offset = params[1];
    rule.degree = params[2];
  }
  return rule;
}

/// Vectors of as many features each.
struct svm_vectors {
  std::vector<float> elements;
  int64_t count = 0;

  int64_t features() const { return count > 0 ? std::ssize(elements) / count : 0; }
};

svm_vectors vectors_of(std::vector<float> elements, int64_t count, const char* attribute) {
  if (count < 1 || count > std::ssize(elements) || std::ssize(elements) % count != 0)
    fail(errc::invalid_model, "attribute '{}' has {} elements, which are not {} vectors", attribute, elements.size(),
         count);
  return {std::move(elements), count};
}

/// Calls `f(row, values)` for each point with the kernel's values for all vectors.
template <class F>
void each_point(const kernel_context& c, const kernel_rule& kernel, const svm_vectors& vectors, F f) {
  const auto [rows, features] = rows_of(c.input(0));
  if (features != vectors.features())
    fail(errc::invalid_input, "points of {} features for vectors of {}", features, vectors.features());
  const read_as<float> x(c.input(0));
  const int64_t grain = std::max<int64_t>(1, 16 * 1024 / std::ssize(vectors.elements));
  parallel_for(rows, grain, [&, count = features](int64_t begin, int64_t end) {
    std::vector<float> values(static_cast<size_t>(vectors.count));
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t v = 0; v < vectors.count; ++v)
        values[static_cast<size_t>(v)] = kernel(x.data() + r * count, vectors.elements.data() + v * count, count);
      f(r, values);
    }
  });
}

// -- SVMRegressor

struct svm_regression {
  kernel_rule kernel;
  svm_vectors vectors;
  std::vector<float> coefficients;
  float rho;
};

svm_regression parse_regression(const attributes& attrs) {
  auto coefficients = attrs.reals("coefficients", {});
  const auto rho = attrs.reals("rho", {});
  require_count("rho", rho.size(), 1);
  const int64_t count = attrs.integer("n_supports", 0);
  if (count == 0) // linear: one vector, the coefficients
    return {{}, vectors_of(std::move(coefficients), 1, "coefficients"), {1}, rho[0]};
  svm_regression m{parse_kernel(attrs), vectors_of(attrs.reals("support_vectors", {}), count, "support_vectors"),
                   std::move(coefficients), rho[0]};
  require_count("coefficients", m.coefficients.size(), static_cast<size_t>(count));
  return m;
}

void infer_svm_regressor(infer_context& c) {
  parse_transform(c.attrs());
  parse_regression(c.attrs());
  c.set_output(0, dtype::float32, row_results(c, 1));
}

void svm_regressor(kernel_context& c) {
  const svm_regression m = parse_regression(c.attrs());
  const score_transform how = parse_transform(c.attrs());
  const bool one_class = c.attrs().integer("one_class", 0) != 0;
  each_point(c, m.kernel, m.vectors, [&](int64_t row, const std::vector<float>& values) {
    float sum = m.rho;
    for (size_t v = 0; v < values.size(); ++v)
      sum += m.coefficients[v] * values[v];
    transform_targets(how, std::span(&sum, 1));
    c.output(0).as<float>()[row] = !one_class ? sum : sum > 0 ? 1.f : -1.f;
  });
}

// -- SVMClassifier

struct svm_classes {
  class_labels labels;
  kernel_rule kernel;
  svm_vectors vectors;            // support vectors; of a linear model a row of coefficients for each class
  std::vector<int64_t> per_class; // support vectors; empty for a linear model
  std::vector<float> coefficients, rho, a, b;

  bool linear() const { return per_class.empty(); }
  bool has_probabilities() const { return !linear() && !a.empty(); }
  size_t pairs() const { return labels.size() * (labels.size() - 1) / 2; }
  /// Scores that a row of the result has: those of the pairs, unless there is one for each class.
  size_t scores() const { return linear() || has_probabilities() || labels.size() == 2 ? labels.size() : pairs(); }
};

svm_classes parse_classes(const attributes& attrs) {
  svm_classes m{{attrs, "classlabels_ints", "classlabels_strings"},
                {},
                {},
                attrs.integers("vectors_per_class", {}),
                attrs.reals("coefficients", {}),
                attrs.reals("rho", {}),
                attrs.reals("prob_a", {}),
                attrs.reals("prob_b", {})};
  const size_t classes = m.labels.size();
  int64_t vectors = 0;
  for (const int64_t n : m.per_class) {
    if (n < 0)
      fail(errc::invalid_model, "a class has {} vectors", n);
    vectors = checked_add(vectors, n);
  }
  if (vectors == 0) {
    m.per_class.clear();
    m.vectors = vectors_of(m.coefficients, static_cast<int64_t>(classes), "coefficients");
    if (m.rho.empty())
      fail(errc::invalid_model, "attribute 'rho' is empty");
    return m;
  }
  if (classes < 2)
    fail(errc::invalid_model, "a classifier of one class has no pairs");
  m.kernel = parse_kernel(attrs);
  m.vectors = vectors_of(attrs.reals("support_vectors", {}), vectors, "support_vectors");
  require_count("vectors_per_class", m.per_class.size(), classes);
  require_count("coefficients", m.coefficients.size(),
                static_cast<size_t>(checked_mul(vectors, std::ssize(m.per_class) - 1)));
  require_count("rho", m.rho.size(), m.pairs());
  if (!m.a.empty() || !m.b.empty()) {
    require_count("prob_a", m.a.size(), m.pairs());
    require_count("prob_b", m.b.size(), m.pairs());
  }
  return m;
}

/// Writes the score of each pair, and returns the votes of each class.
std::vector<int64_t> score_pairs(const svm_classes& m, const std::vector<float>& values, std::vector<float>& scores) {
  const size_t classes = m.labels.size();
  const int64_t count = m.vectors.count;
  std::vector<int64_t> votes(classes), first(classes + 1, 0);
  for (size_t i = 0; i < classes; ++i)
    first[i + 1] = first[i] + m.per_class[i];
  size_t pair = 0;
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = i + 1; j < classes; ++j, ++pair) {
      double sum = 0;
      const auto add = [&](size_t of, size_t row) {
        for (int64_t v = first[of]; v < first[of + 1]; ++v)
          sum += m.coefficients[row * static_cast<size_t>(count) + static_cast<size_t>(v)] *
                 values[static_cast<size_t>(v)];
      };
      add(i, j - 1);
      add(j, i);
      sum += m.rho[pair];
      scores[pair] = static_cast<float>(sum);
      ++votes[sum > 0 ? i : j];
    }
  return votes;
}

/// Joins r, where r[i, j] is the probability of class i if it is i or j, into the probabilities p of all classes: those
/// that minimise Σ over i ≠ j of (r[j, i] p[i] − r[i, j] p[j])², found by going round the classes until all are within
/// `enough`.
std::vector<float> couple(const std::vector<float>& r, size_t classes) {
  constexpr int most_rounds = 100;
  const float enough = 0.005f / static_cast<float>(classes);
  std::vector<float> q(classes * classes, 0), p(classes, 1.f / static_cast<float>(classes)), qp(classes);
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = 0; j < classes; ++j)
      if (i != j) {
        q[i * classes + i] += r[j * classes + i] * r[j * classes + i];
        q[i * classes + j] = -r[j * classes + i] * r[i * classes + j];
      }
  for (int round = 0; round < most_rounds; ++round) {
    float pqp = 0, worst = 0;
    for (size_t i = 0; i < classes; ++i) {
      qp[i] = 0;
      for (size_t j = 0; j < classes; ++j)
        qp[i] += q[i * classes + j] * p[j];
      pqp += p[i] * qp[i];
    }
    for (size_t i = 0; i < classes; ++i)
      worst = std::max(worst, std::abs(qp[i] - pqp));
    if (worst < enough)
      break;
    for (size_t i = 0; i < classes; ++i) {
      const float own = q[i * classes + i], step = (pqp - qp[i]) / own, all = 1 + step;
      p[i] += step;
      pqp = (pqp + step * (step * own + 2 * qp[i])) / all / all;
      for (size_t j = 0; j < classes; ++j) {
        qp[j] = (qp[j] + step * q[i * classes + j]) / all;
        p[j] /= all;
      }
    }
  }
  return p;
}

/// Returns the probabilities of the classes from the scores of the pairs.
std::vector<float> probabilities(const svm_classes& m, const std::vector<float>& scores) {
  constexpr float least = 1e-7f;
  const size_t classes = m.labels.size();
  std::vector<float> r(classes * classes, 0);
  size_t pair = 0;
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = i + 1; j < classes; ++j, ++pair) {
      const float own = 1 / (1 + std::exp(scores[pair] * m.a[pair] + m.b[pair]));
      r[i * classes + j] = std::clamp(own, least, 1 - least);
      r[j * classes + i] = 1 - r[i * classes + j];
    }
  return couple(r, classes);
}

/// The class of linear scores. Of two the second one is taken if any score is positive (half of 1 if all coefficients
/// are), as ONNX Runtime has it.
size_t linear_class(const svm_classes& m, const std::vector<float>& scores) {
  const auto best = std::max_element(scores.begin(), scores.end());
  const auto position = static_cast<size_t>(best - scores.begin());
  if (scores.size() != 2)
    return position;
  const bool positive = std::all_of(m.coefficients.begin(), m.coefficients.end(), [](float x) { return x >= 0; });
  return (positive ? *best >= 0.5f : *best > 0) ? 1 : position;
}

void infer_svm_classifier(infer_context& c) {
  parse_transform(c.attrs());
  const svm_classes m = parse_classes(c.attrs());
  set_classes(c, m.labels, static_cast<int64_t>(m.scores()));
}

/// Scores of one point, and its class.
struct classified {
  size_t label;
  std::vector<float> scores;
};

classified classify(const svm_classes& m, score_transform how, const std::vector<float>& values) {
  classified made{};
  if (m.linear()) {
    made.scores = values;
    for (float& s : made.scores)
      s += m.rho[0];
    made.label = linear_class(m, made.scores);
    transform_scores(how, std::span(made.scores));
    return made;
  }
  made.scores.resize(m.pairs());
  const auto votes = score_pairs(m, values, made.scores);
  made.label = static_cast<size_t>(std::max_element(votes.begin(), votes.end()) - votes.begin());
  if (m.has_probabilities())
    made.scores = probabilities(m, made.scores);
  if (made.scores.size() > 1) {
    transform_scores(how, std::span(made.scores));
  } else {
    const auto meaning = how == score_transform::none ? single_score::margin : single_score::probability;
    const auto both = both_scores(how, meaning, made.scores[0]);
    made.scores.assign(both.begin(), both.end());
  }
  return made;
}

void svm_classifier(kernel_context& c) {
  const svm_classes m = parse_classes(c.attrs());
  const score_transform how = parse_transform(c.attrs());
  each_point(c, m.kernel, m.vectors, [&](int64_t row, const std::vector<float>& values) {
    const classified made = classify(m, how, values);
    m.labels.write(c.output(0), row, made.label);
    if (c.has_output(1))
      std::copy(made.scores.begin(), made.scores.end(), c.output(1).as<float>() + row * std::ssize(made.scores));
  });
}

constexpr auto ml_svm_rows = std::to_array<op_def>({
    scorer_row("SVMClassifier", 1, infer_svm_classifier, svm_classifier, feature_types, 2),
    scorer_row("SVMRegressor", 1, infer_svm_regressor, svm_regressor, feature_types),
});

} // namespace

extern constinit const op_table ml_svm_ops = ml_svm_rows;

} // namespace troupe
