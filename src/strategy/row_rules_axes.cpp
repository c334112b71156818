// Rules of operators that combine elements along axes, or look at each alone.
#include "ops/movement.hpp"
#include "ops/onnx/local_norm.hpp"
#include "ops/onnx/reduce.hpp"
#include "strategy/row_rules.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Only the type of the second operand counts.
row_axes casts_like(const row_call& c) {
  return {c.rows_of(0)};
}

/// A training run draws a number for each element of the batch, one after the other.
row_axes drops_nothing(const row_call& c) {
  if (!c.def().repeats(c.context()))
    fail(errc::unsupported, "drops elements by their position in the batch");
  c.others_are_shared({0});
  return {c.rows_of(0)};
}

/// Along `axis` alone from opset 13 on; before, everything from `axis` on is one vector.
row_axes softmax(const row_call& c) {
  const size_t rank = c.rank(0);
  const bool flattens = c.def().since < 13;
  const int64_t stated = c.attrs().integer("axis", flattens ? 1 : -1);
  const size_t axis = flattens && stated == static_cast<int64_t>(rank) ? rank : normalize_axis(stated, rank);
  const size_t rows = c.rows_of(0);
  if (flattens ? rows >= axis : rows == axis)
    fail(errc::unsupported, "normalises over axis {}, where the rows are", rows);
  return {rows};
}

/// LayerNormalization and RMSNormalization: over the axes from `axis` on. Scale and bias broadcast.
row_axes layer_norm(const row_call& c) {
  const size_t rows = c.rows_of(0);
  if (rows >= c.context().axis("axis", -1, c.rank(0)))
    fail(errc::unsupported, "normalises over axis {}, where the rows are", rows);
  c.require_fit(1, rows, c.rank(0));
  c.require_fit(2, rows, c.rank(0));
  return {rows};
}

row_axes lp_norm(const row_call& c) {
  return {c.rows_beside(c.context().axis("axis", -1, c.rank(0)), "normalises over")};
}

row_axes mean_variance_norm(const row_call& c) {
  const size_t rows = c.rows_of(0);
  if (averaged_axes(c.attrs(), c.rank(0))[rows])
    fail(errc::unsupported, "averages over axis {}, where the rows are", rows);
  return {rows};
}

/// Reductions: the axes are an attribute, or input 1.
row_axes reduction(const row_call& c) {
  c.others_are_shared({0});
  const bool by_input = c.def().inputs.max > 1;
  const auto axes = by_input ? integers_of(c.context(), 1, "") : c.attrs().integers("axes", {});
  const bool noop = by_input && c.attrs().integer("noop_with_empty_axes", 0) != 0;
  const auto reduced = reduced_axes(axes.value_or(std::vector<int64_t>()), c.rank(0), noop);
  const size_t rows = c.rows_of(0);
  if (reduced[rows])
    fail(errc::unsupported, "reduces axis {}, where the rows are", rows);
  if (c.attrs().integer("keepdims", 1) != 0)
    return {rows};
  const auto end = reduced.begin() + static_cast<std::ptrdiff_t>(rows);
  return {rows - static_cast<size_t>(std::count(reduced.begin(), end, true))};
}

row_axes arg_reduction(const row_call& c) {
  const size_t axis = c.context().axis("axis", 0, c.rank(0)), rows = c.rows_beside(axis, "reduces");
  return {rows > axis && c.attrs().integer("keepdims", 1) == 0 ? rows - 1 : rows};
}

row_axes top_k(const row_call& c) {
  c.others_are_shared({0});
  return {c.rows_beside(c.context().axis("axis", -1, c.rank(0)), "sorts")};
}

row_axes cumulative(const row_call& c) {
  c.others_are_shared({0});
  const auto axis = c.context().require_constants(1);
  return {c.rows_beside(normalize_axis(axis.at(0), c.rank(0)), "accumulates along")};
}

/// QuantizeLinear and DequantizeLinear: one scale, or one for each index of `axis`; the zero points are like the
/// scales.
row_axes quantization(const row_call& c) {
  const size_t rows = c.rows_of(0);
  const symbolic_shape& scale = c.dims(1);
  if (std::all_of(scale.begin(), scale.end(), [](const dim& d) { return d.is(1); })) {
    c.others_are_shared({0});
    return {rows};
  }
  if (c.attrs().integer("block_size", 0) != 0 || scale.size() != 1)
    fail(errc::unsupported, "has scales for blocks, which have no rule");
  if (c.context().axis("axis", 1, c.rank(0)) != rows) {
    c.others_are_shared({0});
  } else {
    c.require_rows(1, 0);
    c.require_rows(2, 0);
  }
  return {rows};
}

row_axes determinants(const row_call& c) {
  if (c.rows_of(0) + 2 >= c.rank(0))
    fail(errc::unsupported, "takes determinants over axis {}, where the rows are", c.rows_of(0));
  return {c.rows_of(0)};
}

/// A loss for each position, which has its class along axis 1.
row_axes nll_losses(const row_call& c) {
  if (c.attrs().text("reduction", "mean") != "none")
    fail(errc::unsupported, "reduces over the rows");
  c.others_are_shared({0, 1});
  const size_t rows = c.rows_beside(1, "picks classes"), positions = rows == 0 ? 0 : rows - 1;
  c.require_rows(1, positions);
  return {positions};
}

constexpr auto entries = std::to_array<row_rule_entry>({
    {"", "ArgMax", arg_reduction},
    {"", "ArgMin", arg_reduction},
    {"", "CastLike", casts_like},
    {"", "CumProd", cumulative},
    {"", "CumSum", cumulative},
    {"", "DequantizeLinear", quantization},
    {"", "Det", determinants},
    {"", "Dropout", drops_nothing},
    {"", "Hardmax", softmax},
    {"", "LayerNormalization", layer_norm},
    {"", "LogSoftmax", softmax},
    {"", "LpNormalization", lp_norm},
    {"", "MeanVarianceNormalization", mean_variance_norm},
    {"", "NegativeLogLikelihoodLoss", nll_losses},
    {"", "QuantizeLinear", quantization},
    {"", "RMSNormalization", layer_norm},
    {"", "ReduceL1", reduction},
    {"", "ReduceL2", reduction},
    {"", "ReduceLogSum", reduction},
    {"", "ReduceLogSumExp", reduction},
    {"", "ReduceMax", reduction},
    {"", "ReduceMean", reduction},
    {"", "ReduceMin", reduction},
    {"", "ReduceProd", reduction},
    {"", "ReduceSum", reduction},
    {"", "ReduceSumSquare", reduction},
    {"", "Softmax", softmax},
    {"", "TopK", top_k},
});

} // namespace

std::span<const row_rule_entry> axis_row_rules() {
  return entries;
}

} // namespace troupe
