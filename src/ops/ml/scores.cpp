// Post-transforms of scores (ai.onnx.ml):
//
//   LOGISTIC 1 / (1 + e^−s)     SOFTMAX e^s / Σ e^s     SOFTMAX_ZERO: the same of the scores that are not 0; these stay
//   PROBIT √2 · erf⁻¹(2s − 1), by the approximation with a = 0.147 that every engine uses (its error is below 0.4 %)
#include "ops/ml/scores.hpp"

#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <cmath>

namespace troupe {
namespace {

template <class C>
C logistic(C x) {
  const C y = 1 / (1 + std::exp(-std::abs(x)));
  return x < 0 ? 1 - y : y;
}

/// In double: near 1/2 it is a difference of numbers that are almost the same.
template <class C>
C probit(C x) {
  const double y = 2 * static_cast<double>(x) - 1, a = 0.147, log = std::log((1 - y) * (1 + y)),
               half = 2 / (3.14159 * a) + log / 2;
  const double magnitude = std::sqrt(std::sqrt(half * half - log / a) - half);
  return static_cast<C>(1.41421356 * (y < 0 ? -magnitude : magnitude));
}

/// A score this small counts as 0.
constexpr double zero_score = 1e-7;

template <class C>
void softmax(std::span<C> scores, bool zeros_stay) {
  const C most = *std::max_element(scores.begin(), scores.end());
  C sum = 0;
  for (C& s : scores) {
    const bool stays = zeros_stay && std::abs(s) <= C(zero_score);
    s = stays ? 0 : std::exp(s - most);
    sum += s;
  }
  for (C& s : scores)
    s = sum == 0 ? 0 : s / sum; // all were 0
}

} // namespace

score_transform parse_transform(const attributes& attrs) {
  return word_as<score_transform>(attrs, "post_transform", "NONE",
                                  {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"});
}

void require_count(std::string_view attribute, size_t count, size_t wanted) {
  if (count != wanted)
    fail(errc::invalid_model, "attribute '{}' has {} elements instead of {}", attribute, count, wanted);
}

template <class C>
void transform_scores(score_transform how, std::span<C> scores) {
  switch (how) {
    case score_transform::none: return;
    case score_transform::softmax: return softmax(scores, false);
    case score_transform::softmax_zero: return softmax(scores, true);
    case score_transform::logistic:
      return std::transform(scores.begin(), scores.end(), scores.begin(), logistic<C>), void();
    case score_transform::probit:
      return std::transform(scores.begin(), scores.end(), scores.begin(), probit<C>), void();
  }
}

template <class C>
void transform_targets(score_transform how, std::span<C> scores) {
  if (scores.size() > 1 || how == score_transform::probit)
    transform_scores(how, scores);
}

template <class C>
std::array<C, 2> both_scores(score_transform how, single_score meaning, C score) {
  if (how == score_transform::logistic)
    return {logistic(-score), logistic(score)};
  std::array<C, 2> both{meaning == single_score::probability ? 1 - score : -score, score};
  if (how == score_transform::probit)
    transform_scores<C>(how, both);
  return both;
}

template void transform_scores(score_transform, std::span<float>);
template void transform_scores(score_transform, std::span<double>);
template void transform_targets(score_transform, std::span<float>);
template void transform_targets(score_transform, std::span<double>);
template std::array<float, 2> both_scores(score_transform, single_score, float);
template std::array<double, 2> both_scores(score_transform, single_score, double);

class_labels::class_labels(const attributes& attrs, std::string_view of_integers, std::string_view of_texts)
    : integers_(attrs.integers(of_integers, {})), texts_(attrs.texts(of_texts, {})) {
  if (integers_.empty() == texts_.empty())
    fail(errc::invalid_model, "one of the attributes '{}' and '{}' must hold labels, the other none", of_integers,
         of_texts);
}

void class_labels::write(const mutable_view& to, int64_t at, size_t index) const {
  if (texts_.empty())
    to.as<int64_t>()[at] = integers_.at(index);
  else
    to.as<std::string>()[at] = texts_.at(index);
}

feature_rows rows_of(const const_view& x) {
  if (x.dims.empty() || x.dims.size() > 2)
    fail(errc::invalid_input, "features of shape {}; [N, C] or [C] is needed", to_string(x.dims));
  return x.dims.size() == 1 ? feature_rows{1, x.dims[0]} : feature_rows{x.dims[0], x.dims[1]};
}

symbolic_shape row_results(const infer_context& c, int64_t columns) {
  const symbolic_shape& x = c.dims(0);
  if (x.empty() || x.size() > 2)
    fail(errc::invalid_model, "features of shape {}; [N, C] or [C] is needed", to_string(x));
  return {x.size() == 1 ? dim(1) : x[0], columns};
}

void set_classes(infer_context& c, const class_labels& labels, int64_t scores) {
  symbolic_shape dims = row_results(c, scores);
  c.set_output(0, labels.type(), {dims[0]});
  c.set_output(1, dtype::float32, std::move(dims));
}

} // namespace troupe
