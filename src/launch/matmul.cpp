// MatMul, Gemm and troupe.MatMul as products of shaders/gemm.glsl; MatMul of other types as contractions.
#include "base/checked.hpp"
#include "launch/contraction.hpp"
#include "launch/launch_rules.hpp"
#include "launch/product.hpp"

namespace troupe {
namespace {

/// Returns the batch of a product: axes of the operands' broadcast leading dims, innermost first, merged if both
/// operands step evenly.
std::vector<batch_axis> batch_of(std::span<const int64_t> a, std::span<const int64_t> b, int64_t a_matrix,
                                 int64_t b_matrix) {
  std::vector<batch_axis> axes;
  int64_t a_step = a_matrix, b_step = b_matrix;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const int64_t a_size = i < a.size() ? a[a.size() - 1 - i] : 1, b_size = i < b.size() ? b[b.size() - 1 - i] : 1;
    const batch_axis axis{a_size == 1 ? b_size : a_size, a_size == 1 ? 0 : a_step, b_size == 1 ? 0 : b_step};
    a_step *= a_size;
    b_step *= b_size;
    if (axis.size == 1)
      continue;
    const bool merges =
        !axes.empty() && axes.back().a * axes.back().size == axis.a && axes.back().b * axes.back().size == axis.b;
    if (merges)
      axes.back().size *= axis.size;
    else
      axes.push_back(axis);
  }
  return axes;
}

} // namespace

float_product stacked_product(std::span<const int64_t> a, std::span<const int64_t> b, bool ta, bool tb) {
  float_product p;
  const size_t ra = a.size(), rb = b.size();
  const bool row = ra == 1, column = rb == 1; // vectors are a row on the left, a column on the right
  p.m = row ? 1 : a[ra - (ta ? 1 : 2)];
  p.k = row ? a[0] : a[ra - (ta ? 2 : 1)];
  p.n = column ? 1 : b[rb - (tb ? 2 : 1)];
  p.a_line = ta ? 1 : p.k;
  p.a_depth = ta ? p.m : 1;
  p.b_line = tb || column ? p.k : 1;
  p.b_depth = tb || column ? 1 : p.n;
  const auto leading = [](std::span<const int64_t> dims) { return dims.first(dims.size() < 2 ? 0 : dims.size() - 2); };
  p.batch = batch_of(leading(a), leading(b), p.m * p.k, p.k * p.n);
  if (p.batch.size() == 1 && p.batch[0].b == 0 && !ta) { // one right matrix: all left rows are one matrix
    p.m *= p.batch[0].size;
    p.batch.clear();
  }
  return p;
}

namespace {

launch_lists matmul_launches(const gpu_call& call) {
  if (!product_variant(call.inputs[0].type, call.gpu)) {
    if (call.outputs[0].is_part())
      return {};
    const bool row = call.inputs[0].dims.size() == 1, column = call.inputs[1].dims.size() == 1;
    return contraction_launches(call, fmt::format("{},{}->...{}{}", row ? "j" : "...ij", column ? "j" : "...jk",
                                                  row ? "" : "i", column ? "" : "k"));
  }
  return product_launches(call, stacked_product(call.inputs[0].dims, call.inputs[1].dims, false, false));
}

launch_lists fused_matmul_launches(const gpu_call& call) {
  float_product p = stacked_product(call.inputs[0].dims, call.inputs[1].dims, call.attrs.integer("transA", 0) != 0,
                                    call.attrs.integer("transB", 0) != 0);
  p.epilogue.alpha = call.attrs.real("alpha", 1.f);
  p.epilogue.act = parse_activation(call.attrs);
  if (call.has_input(2))
    p.epilogue.bias = 2;
  if (call.has_input(3))
    p.epilogue.residual = 3;
  return product_launches(call, p);
}

launch_lists gemm_launches(const gpu_call& call) {
  float_product p = stacked_product(call.inputs[0].dims, call.inputs[1].dims, call.attrs.integer("transA", 0) != 0,
                                    call.attrs.integer("transB", 0) != 0);
  p.epilogue.alpha = call.attrs.real("alpha", 1.f);
  p.epilogue.beta = call.attrs.real("beta", 1.f);
  if (call.has_input(2)) {
    const shape& c = call.inputs[2].dims;
    const int64_t rows = c.size() > 1 ? c[c.size() - 2] : 1, columns = c.empty() ? 1 : c.back();
    p.epilogue.bias = 2;
    p.epilogue.bias_row = rows == 1 ? 0 : columns;
    p.epilogue.bias_column = columns == 1 ? 0 : 1;
  }
  return product_launches(call, p);
}

} // namespace

extern constinit const launch_rows matmul_rules = {
    {"", "Gemm", gemm_launches, 1, true},
    {"", "MatMul", matmul_launches, 1, true},
    {"troupe", "MatMul", fused_matmul_launches, 1, true},
};

} // namespace troupe
