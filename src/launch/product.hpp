// Launches of matrix products: what MatMul, Gemm and convolution have in common (shaders/gemm.glsl).
#pragma once

#include "launch/parameters.hpp"
#include "launch/row_team.hpp"
#include "launch/tiling.hpp"
#include "ops/activation.hpp"

namespace troupe {

/// One axis of a product's batch; steps in elements.
struct batch_axis {
  int64_t size = 1, a = 0, b = 0;
};

/// What follows the sums: act(alpha · sum + beta · bias + residual).
struct product_epilogue {
  size_t bias = no_input, residual = no_input;
  int64_t bias_row = 0, bias_column = 1; // strides, 0 where it is broadcast
  float alpha = 1, beta = 1;
  activation act;
  weight_ptr made_bias; // in the place of input `bias`

  /// Returns the flags it needs.
  uint32_t flags() const;
};

/// A norm of whole rows of what the epilogue gives: LayerNormalization, or, not centred, RMSNormalization. Output 0 is
/// the norm then, and output 1, if it is there, what is normalised.
struct norm_of_rows {
  size_t scale, shift; // inputs, as long as a row; the shift may be absent
  float epsilon;
  bool centred;
  row_team team;
};

/// C[m, n] of each batch = Σ over k of A[m, k] · B[n, k], then the epilogue. Strides in elements. C is row-major,
/// batches one after another.
struct float_product {
  int64_t m = 0, n = 0, k = 0;
  size_t a = 0, b = 1; // inputs
  int64_t a_line = 0, a_depth = 1, b_line = 0, b_depth = 1;
  std::vector<batch_axis> batch; // innermost first
  product_epilogue epilogue;
  /// In the place of input `b`, which it is made of: B's columns one after the other, each padded with zeros as
  /// `bind_right` pads them.
  weight_ptr made_b;
  std::optional<norm_of_rows> norm; // only where it is split (`add_split_sum`)

  int64_t batches() const;
};

/// Packed columns are padded to this many elements, the widest vector that a kernel loads.
inline constexpr int64_t packed_column_padding = 8;

/// Operand B as a kernel finds it: packed, where it is a constant whose depths are not neighbours or not whole vectors.
struct right_operand {
  launch_binding binding;
  float_product p; // with B's strides as bound
  int64_t depth;   // readable elements of a column: k, or more where it is padded with zeros
};

/// Returns a launch's groups in tiles: of rows, of columns, of batches and their splits.
std::array<uint32_t, 3> product_groups(const float_product& p, const tiling& t);

/// Returns a column's elements with that padding.
int64_t packed_pitch(int64_t depth);

right_operand bind_right(launch_builder& builder, const gpu_call& call, float_product p);

/// Returns the product of stacks of matrices of these dims, as MatMul multiplies them; `ta` and `tb` say that an
/// operand's last two dims are stored transposed.
float_product stacked_product(std::span<const int64_t> a, std::span<const int64_t> b, bool ta, bool tb);

/// Returns whether tiles with slices are worth trying for a product: of float32, whose table they are in, and on
/// devices that products leave idle. Small devices, and those that do not say how large they are, are soon full;
/// software is slow to compile slices, and has nothing to wait for.
bool tries_slices(dtype type, const gpu_call& call);

/// Adds ways by matrix units and by scalar arithmetic, in this order, but of float32 scalar ones first where the
/// device's matrix units are not strong, or predicted to gain less than a tenth.
void add_by_speed(launch_lists& lists, dtype operands, const gpu_features& gpu, launch_lists matrices,
                  launch_lists scalars);

/// Returns the shader variant for a tile: kernels with slices are one of their own, the cooperative kernels have one
/// for each shape of a subgroup's part.
std::string tile_variant(tile_family family, const std::string& variant, const tiling& t);

/// Where C goes: rows are `row` apart, columns `column`, and the first element is `first`, counted from the begin of
/// the output's binding.
struct product_output {
  int64_t row = 0, column = 1, first = 0;
};

/// Returns where the rows of `p` go: they are those of the output, one after the other or parts of larger ones.
product_output output_rows(const operand& out, const float_product& p);

/// Whether a rule can write an output that may be a part of a larger tensor: as `rows` rows, and nothing is added whose
/// rows are apart otherwise.
bool can_write(const operand& out, int64_t rows, const product_epilogue& e);

/// What the epilogue reads: the matrix A where it reads nothing.
struct epilogue_bindings {
  launch_binding bias, residual;
};

epilogue_bindings bind_epilogue(launch_builder& builder, const float_product& p);

/// Returns what the parameters of products begin with. Columns are counted from `first_column` in the output and the
/// bias.
shader::product_parameters product_parameters_of(const float_product& p, const tiling& t, const product_output& out,
                                                 int64_t first_column);

/// Returns the flag that lets a kernel write `width` neighbouring columns at once, if all vectors are aligned and
/// whole.
uint32_t vector_out(const float_product& p, const product_output& out, int64_t width);

/// Returns the parameters of a product of strided operands (shaders/matmul_batch.glsl), whose columns begin with
/// `first_column`.
std::vector<uint32_t> stack_parameters(const float_product& p, const tiling& t, const product_output& out,
                                       int64_t first_column);

/// Adds the launch that sums the partial results that `scratch` holds, applies the epilogue and normalises the rows if
/// `p` says so. Output 0 is row-major or, of rows that are not normalised, a part of such a tensor.
void add_split_sum(launch_builder& builder, const gpu_call& call, const float_product& p, const tiling& t,
                   launch_binding scratch);

/// Returns "f32" or "f16", the variants of products; nullopt for other types and if the device lacks float16.
std::optional<std::string> product_variant(dtype type, const gpu_features& gpu);

/// Returns the family of the cooperative kernels that run products of `type`, float32 or float16; nullopt if the device
/// has none.
std::optional<tile_family> cooperative_family(dtype type, const gpu_features& gpu);

/// Returns the list that `builder` built with a tile, or none if it went beyond the device's limits.
std::optional<launch_list> tiled_list(launch_builder& builder, const gpu_call& call, const tiling& t);

/// Returns every way to run a product of float32 or float16 operands.
launch_lists product_launches(const gpu_call& call, const float_product& p);

/// Returns the ways to run a product that is split and whose rows are normalised by the launch that adds its parts, the
/// fastest by the model first; `norm` says all but the team.
launch_lists normed_product_launches(const gpu_call& call, float_product p, norm_of_rows norm);

} // namespace troupe
