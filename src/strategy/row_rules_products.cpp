// Rules of matrix products, Einsum and attention.
#include "ops/composed/fused_attention.hpp"
#include "ops/composed/projections.hpp"
#include "ops/onnx/einsum.hpp"
#include "strategy/row_rules.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// One factor of a matrix product. A vector has no axis of its own in the result, only the one that is summed over.
struct factor {
  size_t operand;
  size_t rank;
  size_t summed; // axis
  size_t own;    // axis; the rank where there is none

  size_t batches() const { return rank < 2 ? 0 : rank - 2; }
};

factor left_factor(const row_call& c, size_t operand, bool transposed) {
  const size_t rank = c.rank(operand);
  return rank < 2 ? factor{operand, rank, 0, rank}
                  : factor{operand, rank, rank - (transposed ? 2 : 1), rank - (transposed ? 1 : 2)};
}

factor right_factor(const row_call& c, size_t operand, bool transposed) {
  const size_t rank = c.rank(operand);
  return rank < 2 ? factor{operand, rank, 0, rank}
                  : factor{operand, rank, rank - (transposed ? 1 : 2), rank - (transposed ? 2 : 1)};
}

/// Returns where a factor's rows are in the result, which has `batches` batch axes and then, at `own`, the factor's own
/// axis.
size_t axis_in_product(const row_call& c, const factor& f, size_t batches, size_t own) {
  const size_t rows = c.rows_of(f.operand);
  if (rows == f.summed)
    fail(errc::unsupported, "sums over axis {} of {}, where the rows are", rows, c.operand_text(f.operand));
  return rows == f.own ? own : rows + batches - f.batches();
}

/// The rule of a · b, whatever is added afterwards.
size_t product_axis(const row_call& c, const factor& a, const factor& b) {
  const size_t batches = std::max(a.batches(), b.batches());
  const bool in_a = c.has_rows(a.operand), in_b = c.has_rows(b.operand);
  const size_t own_of_b = batches + (a.rank < 2 ? 0 : 1);
  const size_t axis = in_a ? axis_in_product(c, a, batches, batches) : axis_in_product(c, b, batches, own_of_b);
  if (in_a && in_b) {
    if (axis >= batches || axis != axis_in_product(c, b, batches, own_of_b))
      fail(errc::unsupported, "multiplies each row with all others");
    return axis;
  }
  const factor& other = in_a ? b : a;
  const size_t missing = batches - other.batches();
  if (axis < batches && axis >= missing && !c.dims(other.operand)[axis - missing].is(1))
    fail(errc::unsupported, "gives each row a part of {}", c.operand_text(other.operand));
  return axis;
}

row_axes matmul(const row_call& c) {
  c.others_are_shared({0, 1});
  return {product_axis(c, left_factor(c, 0, false), right_factor(c, 1, false))};
}

bool is_set(const row_call& c, const char* name) {
  return c.attrs().integer(name, 0) != 0;
}

/// A · B + C, where C broadcasts.
row_axes gemm_rule(const row_call& c) {
  const size_t axis = product_axis(c, left_factor(c, 0, is_set(c, "transA")), right_factor(c, 1, is_set(c, "transB")));
  c.require_fit(2, axis, 2);
  return {axis};
}

/// With a bias along the last axis, and a residual of the result's dims.
row_axes fused_matmul(const row_call& c) {
  const size_t axis = product_axis(c, left_factor(c, 0, is_set(c, "transA")), right_factor(c, 1, is_set(c, "transB")));
  c.require_fit(2, axis, c.output_dims().size());
  c.require_fit(3, axis, c.output_dims().size());
  return {axis};
}

/// Scales and zero points of a factor with rows must be for all of it.
row_axes matmul_integer_rule(const row_call& c) {
  c.others_are_shared({0, 1});
  for (const size_t i : {0, 1})
    if (c.has_rows(i))
      c.require_single(i + 2);
  return {product_axis(c, left_factor(c, 0, false), right_factor(c, 1, false))};
}

row_axes qlinear_matmul_rule(const row_call& c) {
  c.others_are_shared({0, 3});
  for (const size_t i : {0, 3})
    if (c.has_rows(i))
      for (const size_t parameter : {i + 1, i + 2})
        c.require_single(parameter);
  c.require_single(6);
  c.require_single(7);
  return {product_axis(c, left_factor(c, 0, false), right_factor(c, 3, false))};
}

/// As matmul_integer_rule, with a bias along the last axis and a residual of the result's dims.
row_axes quantized_matmul_rule(const row_call& c) {
  constexpr size_t b_scale = 3, b_zero = 5, bias = 6, residual = 9;
  c.others_are_shared({0, 1, residual});
  for (const size_t i : {2, 4, 7, 8}) // scales and zero points of A and of the result
    c.require_single(i);
  if (c.has_rows(1))
    for (const size_t parameter : {b_scale, b_zero})
      c.require_single(parameter);
  const size_t axis = product_axis(c, left_factor(c, 0, false), right_factor(c, 1, false));
  c.require_fit(bias, axis, c.output_dims().size());
  c.require_fit(residual, axis, c.output_dims().size());
  return {axis};
}

row_axes matmul_nbits_rule(const row_call& c) {
  c.others_are_shared({0});
  return {c.rows_beside(c.rank(0) - 1, "sums over")};
}

/// The angles of projections: those of a batch element, or of all. With positions they are tables.
void require_own_angles(const row_call& c, size_t axis) {
  const projection_attributes how(c.attrs());
  if (how.rotary.empty())
    return;
  if (axis != 0)
    fail(errc::unsupported, "rotates by positions that are rows");
  const auto angle = [&](projection::angle a) { return projection::input(how.products, a); };
  const bool by_position = c.context().has_input(angle(projection::positions));
  for (const size_t i : {angle(projection::cosines), angle(projection::sines)})
    if (by_position)
      c.require_shared(i);
    else if (how.rotary == "Rotary")
      c.require_fit(i, 0, 3);
    else
      c.require_rows(i, 0);
  c.require_rows(angle(projection::positions), 0);
}

/// Weights, biases and the norms' scales and shifts are along the last axis; residuals have the results' dims.
row_axes projections_rule(const row_call& c) {
  const size_t axis = c.rows_beside(c.rank(0) - 1, "sums over");
  require_own_angles(c, axis);
  const projection_attributes how(c.attrs());
  const size_t angles = how.rotary.empty() ? SIZE_MAX : projection::input(how.products, projection::cosines);
  const size_t end = std::min(c.context().input_count(), angles);
  for (size_t i = 1; i < end; ++i)
    if (i >= projection::first && (i - projection::first) % projection::each == projection::slot::residual)
      c.require_fit(i, axis, c.rank(0));
    else
      c.require_shared(i);
  return {axis};
}

/// The letter of the rows must be in the output, and an operand that has it must have its rows there.
row_axes einsum_rule(const row_call& c) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < c.context().input_count(); ++i)
    ranks.push_back(c.rank(i));
  const einsum_equation e = parse_einsum(c.attrs().text("equation", ""), ranks);
  std::optional<int> letter;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!c.has_rows(i))
      continue;
    const int own = e.terms[i][c.rows_of(i)];
    if (letter.value_or(own) != own)
      fail(errc::unsupported, "multiplies each row with all others");
    letter = own;
  }
  if (!letter)
    fail(errc::unsupported, "has rows in its result, but not in its operands");
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!c.has_rows(i))
      c.require_shared(i);
    for (size_t axis = 0; axis < ranks[i]; ++axis)
      if (e.terms[i][axis] == *letter && !(c.has_rows(i) && c.rows_of(i) == axis) && !c.dims(i)[axis].is(1))
        fail(errc::unsupported, "gives each row a part of {}", c.operand_text(i));
  }
  const auto found = std::find(e.output.begin(), e.output.end(), *letter);
  if (found == e.output.end())
    fail(errc::unsupported, "sums over the rows");
  return {static_cast<size_t>(found - e.output.begin())};
}

/// ONNX's Attention and the fused one: a batch element is a row of Q, K, V and what is past; the mask broadcasts.
row_axes attends(const row_call& c) {
  for (size_t i = 0; i < c.context().input_count(); ++i)
    if (i == 3)
      c.require_fit(i, 0, 4);
    else
      c.require_rows(i, 0);
  return {0};
}

/// troupe.AttentionProjection: with a matrix and a bias for all, and a residual of the result's dims.
row_axes attends_and_projects(const row_call& c) {
  for (size_t i = 0; i < c.context().input_count(); ++i)
    if (i == 3)
      c.require_fit(i, 0, 4);
    else if (i == attention_projection::weights || i == attention_projection::bias)
      c.require_shared(i);
    else if (i == attention_projection::residual)
      c.require_fit(i, 0, 3);
    else
      c.require_rows(i, 0);
  return {0};
}

/// troupe.Append: a batch element is a row of the cache and of what is new.
row_axes appends(const row_call& c) {
  for (const size_t i : {0, 1})
    c.require_rows(i, 0);
  return {0};
}

/// troupe.Rotary: the angles are those of a row, or of all.
row_axes rotates(const row_call& c) {
  c.require_rows(0, 0);
  for (const size_t i : {1, 2})
    c.require_fit(i, 0, 3);
  return {0};
}

/// With position_ids the caches are tables, else they hold the angles of each row.
row_axes rotary_embedding(const row_call& c) {
  c.require_rows(0, 0);
  const bool by_position = c.context().has_input(3);
  if (by_position) {
    c.others_are_shared({0, 3});
    c.require_rows(3, 0);
  } else {
    c.require_rows(1, 0);
    c.require_rows(2, 0);
  }
  return {0};
}

/// Sequences with gates and a state of their own.
row_axes recurs_linearly(const row_call& c) {
  for (size_t i = 0; i < 6; ++i)
    c.require_rows(i, 0);
  return {0};
}

constexpr auto product_entries = std::to_array<row_rule_entry>({
    {"", "Attention", attends},
    {"", "Einsum", einsum_rule},
    {"", "Gemm", gemm_rule},
    {"", "LinearAttention", recurs_linearly},
    {"", "MatMul", matmul},
    {"", "MatMulInteger", matmul_integer_rule},
    {"", "QLinearMatMul", qlinear_matmul_rule},
    {"", "RotaryEmbedding", rotary_embedding},
    {"com.microsoft", "MatMulBnb4", matmul_nbits_rule},
    {"com.microsoft", "MatMulFpQ4", matmul_nbits_rule},
    {"com.microsoft", "MatMulNBits", matmul_nbits_rule},
    {"troupe", "Append", appends},
    {"troupe", "Attention", attends},
    {"troupe", "AttentionProjection", attends_and_projects},
    {"troupe", "MatMul", fused_matmul},
    {"troupe", "Projections", projections_rule},
    {"troupe", "QuantizedMatMul", quantized_matmul_rule},
    {"troupe", "Rotary", rotates},
});

} // namespace

std::span<const row_rule_entry> product_row_rules() {
  return product_entries;
}

} // namespace troupe
