// What the models of ai.onnx.ml share: rows of features, labels of classes, and what becomes of scores.
#pragma once

#include "ops/axes.hpp"
#include "ops/families.hpp"

namespace troupe {

/// What ONNX calls a post-transform of a row of scores.
enum class score_transform : uint8_t { none, softmax, logistic, softmax_zero, probit };

/// Returns what attribute `post_transform` names; throws `errc::invalid_model` if it is none.
score_transform parse_transform(const attributes& attrs);

/// Throws `errc::invalid_model` unless `count` numbers of an attribute are `wanted`.
void require_count(std::string_view attribute, size_t count, size_t wanted);

/// Transforms a row of two scores or more.
template <class C>
void transform_scores(score_transform how, std::span<C> scores);

/// Transforms the score of a regression: of a single one only PROBIT makes another, as ONNX Runtime has it.
template <class C>
void transform_targets(score_transform how, std::span<C> scores);

/// What the one score of two classes means.
enum class single_score : uint8_t {
  probability, // of the second class: the first has the rest of 1
  margin,      // the second class where it is positive: the first has its negative
};

/// Returns the scores of both classes. Only LOGISTIC and PROBIT apply to them.
template <class C>
std::array<C, 2> both_scores(score_transform how, single_score meaning, C score);

/// The labels of a classifier's classes, of integers or strings.
class class_labels {
public:
  /// Reads the attributes of these names; throws `errc::invalid_model` unless exactly one of them is there.
  class_labels(const attributes& attrs, std::string_view of_integers, std::string_view of_texts);

  dtype type() const { return texts_.empty() ? dtype::int64 : dtype::string; }
  size_t size() const { return std::max(texts_.size(), integers_.size()); }
  /// Writes label `index` as element `at`.
  void write(const mutable_view& to, int64_t at, size_t index) const;

private:
  std::vector<int64_t> integers_;
  std::vector<std::string> texts_;
};

/// Features of several points: an operand [N, C], or [C], which is one point.
struct feature_rows {
  int64_t rows, columns;
};
/// Throws `errc::invalid_input` if the operand has another rank.
feature_rows rows_of(const const_view& x);

/// Returns [N, columns] for such an operand. Throws `errc::invalid_model` if it has another rank.
symbolic_shape row_results(const infer_context& c, int64_t columns);

/// Sets output 0 to a label a row, output 1 to `scores` scores a row.
void set_classes(infer_context& c, const class_labels& labels, int64_t scores);

/// What models take, whatever they compute with.
inline constexpr dtype_set feature_types = set_of(dtype::float32, dtype::float64, dtype::int64, dtype::int32);

/// Returns the row of an operator that gives each row of features, [N, C], scores or a label.
constexpr op_def scorer_row(std::string_view name, int64_t since, void (*infer)(infer_context&),
                            void (*reference)(kernel_context&), dtype_set types, uint8_t outputs = 1) {
  return op_row(name, since, infer, reference,
                {.domain = machine_learning,
                 .max_outputs = outputs,
                 .types = types,
                 .axes = axes::before_last<1>,
                 .mixes = "scores what is along"});
}

} // namespace troupe
