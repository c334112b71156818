// What operators of ai.onnx.ml, and those of com.microsoft that ai.onnx has nothing like, do with the rows of a batch.
#include "strategy/row_rules.hpp"

namespace troupe {
namespace {

/// Each row of features [n, c] gets scores, labels or both.
row_axes scores_rows(const row_call& c) {
  c.only_first_has_rows();
  if (c.rank(0) != 2)
    fail(errc::unsupported, "takes its only axis for the features of one row");
  return {c.rows_beside(1, "scores")};
}

/// Element by element; what comes of one may have an axis more at the end.
row_axes maps_elements(const row_call& c) {
  return {c.rows_of(0)};
}

/// Words [n, characters] by tables for all.
row_axes embeds_words(const row_call& c) {
  c.others_are_shared({0});
  c.require_rows(0, 0);
  return {0};
}

row_axes inverts_matrices(const row_call& c) {
  const size_t rows = c.rows_of(0);
  if (rows + 2 >= c.rank(0))
    fail(errc::unsupported, "inverts matrices of rows");
  return {rows};
}

/// Distances of each row of A from all of B.
row_axes measures_distances(const row_call& c) {
  c.only_first_has_rows();
  return {c.rows_beside(1, "sums over")};
}

row_axes blocks_repeats(const row_call& c) {
  c.require_rows(0, 0);
  c.require_rows(1, 0);
  return {0};
}

/// Rows of tokens, [n, tokens], with the tokens before each row; multipliers and sizes are for all.
row_axes hashes_ngrams(const row_call& c) {
  constexpr size_t past = 3;
  c.others_are_shared({0, past});
  c.require_rows(0, 0);
  c.require_rows(past, 0);
  return {0, 0};
}

/// Tokens [n, c] and what the router says of each.
row_axes asks_experts(const row_call& c) {
  if (c.rank(0) != 2)
    fail(errc::unsupported, "lists the tokens of all rows for the router");
  c.others_are_shared({0, 1});
  c.require_rows(0, 0);
  c.require_rows(1, 0);
  return {0};
}

row_axes gathers_blocks(const row_call& c) {
  c.others_are_shared({1});
  return {c.context().axis("gather_axis", 0, c.rank(0)) + c.rows_of(1)};
}

// clang-format off
constexpr auto domain_entries = std::to_array<row_rule_entry>({
    {"ai.onnx.ml", "CategoryMapper", maps_elements},
    {"ai.onnx.ml", "LabelEncoder", maps_elements},
    {"ai.onnx.ml", "LinearClassifier", scores_rows},
    {"ai.onnx.ml", "LinearRegressor", scores_rows},
    {"ai.onnx.ml", "OneHotEncoder", maps_elements},
    {"ai.onnx.ml", "SVMClassifier", scores_rows},
    {"ai.onnx.ml", "SVMRegressor", scores_rows},
    {"ai.onnx.ml", "TreeEnsemble", scores_rows},
    {"ai.onnx.ml", "TreeEnsembleClassifier", scores_rows},
    {"ai.onnx.ml", "TreeEnsembleRegressor", scores_rows},
    {"com.microsoft", "CDist", measures_distances},
    {"com.microsoft", "GatherBlockQuantized", gathers_blocks},
    {"com.microsoft", "Inverse", inverts_matrices},
    {"com.microsoft", "MoE", asks_experts},
    {"com.microsoft", "MurmurHash3", maps_elements},
    {"com.microsoft", "NGramHashMapping", hashes_ngrams},
    {"com.microsoft", "NGramRepeatBlock", blocks_repeats},
    {"com.microsoft", "QMoE", asks_experts},
    {"com.microsoft", "WordConvEmbedding", embeds_words},
});
// clang-format on

} // namespace

std::span<const row_rule_entry> domain_row_rules() {
  return domain_entries;
}

} // namespace troupe
