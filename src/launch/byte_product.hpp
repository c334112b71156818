// Products of bytes with scales on GPUs: what QuantizedConv and QuantizedMatMul have in common
// (shaders/byte_operands.glsl).
#pragma once

#include "launch/product.hpp"

namespace troupe {

/// Positions of such a call's inputs (src/ops/composed/fused_quantized.cpp).
struct byte_inputs {
  static constexpr size_t a = 0, b = 1, a_scale = 2, b_scale = 3, a_zero = 4, b_zero = 5, bias = 6, y_scale = 7,
                          y_zero = 8, r = 9, r_scale = 10, r_zero = 11, z_scale = 12, z_zero = 13;
  /// Of which a call has one element each; those from r on beside r alone.
  static constexpr size_t singles[] = {a_scale, a_zero, y_scale, y_zero, r_scale, r_zero, z_scale, z_zero};
};

/// How a call's operands and results are scaled, as the shaders' flags (parameters/quantized.h).
struct byte_scaling {
  uint32_t flags = 0;
  activation act;
  float sum_low = 0, sum_high = 0;                // of a sum with a residual
  std::optional<shader::quantized_numbers> known; // single scales and zero points, if all are constant

  bool has(uint32_t flag) const { return (flags & flag) != 0; }
  /// Whether A's elements, as the kernels see them, are centred about 0; B's.
  bool a_centred() const;
  bool b_centred() const;
};

/// Returns the scaling of a call of `columns` columns (filters); nullopt if types or sizes are none that the kernels
/// take.
std::optional<byte_scaling> byte_scaling_of(const gpu_call& call, int64_t columns);

/// Returns the parameters of a call's end as those of a product: limits of a sum are alpha and beta.
product_epilogue byte_epilogue(const byte_scaling& s);

/// Constant operand B as columns of neighbouring depths, padded with zeros to whole vectors, and their sums if they are
/// needed.
struct byte_columns {
  launch_binding bytes;
  std::optional<launch_binding> sums;
  int64_t pitch = 0; // bytes from one column to the next
};

/// Packs `columns` of `depth` bytes, in the order `order` of the constant's `dims`: columns first.
byte_columns pack_columns(launch_builder& b, const gpu_call& call, const byte_scaling& s, const shape& dims,
                          const shape& order, int64_t columns, int64_t depth);

/// Returns a kernel's bindings.
std::vector<launch_binding> byte_bindings(launch_builder& b, const gpu_call& call, const launch_binding& right,
                                          const std::optional<launch_binding>& sums);

/// Adds the numbers that are known to a kernel's block.
void add_numbers(launch& l, const byte_scaling& s);

/// Which kernel multiplies.
enum class byte_kernel : uint8_t { matrices, dot, plain };

/// Returns the kernels that a device has for a call, the fastest first. Those by matrices take constant columns that
/// are centred only.
std::vector<byte_kernel> byte_kernels(const gpu_features& gpu, const byte_scaling& s, bool constant_columns);

/// Returns the tiles of a kernel that the call asks for, whose depths are bytes, the fastest by the model first; none
/// if none fits the device.
std::vector<tiling> byte_tilings(const float_product& p, byte_kernel kernel, bool gathers, const gpu_call& call);

/// Returns the shader of a kernel: a variant of `stem`, "quantized_conv" or "quantized_matmul".
std::string byte_shader(const std::string& stem, byte_kernel kernel, const tiling& t);

/// Returns in which mode a row of `depth` neighbouring bytes is read, given what its beginning is a multiple of.
uint32_t byte_mode(int64_t depth);

/// Returns every way to run a matrix product of bytes with scales.
launch_lists byte_product_launches(const gpu_call& call, const float_product& p, const byte_scaling& s);

} // namespace troupe
