// The calls that troupe.Projections (projections.cpp) takes the place of: its reference kernel, the CPU's and some of
// the GPU's launches run them.
#pragma once

#include "ops/activation.hpp"
#include "ops/call_parts.hpp"

namespace troupe {

/// Inputs of the operator: the operand, scale and shift of its norm, then five for each product, then those of a rotary
/// embedding, or scale and shift of the norm after a single product.
namespace projection {
inline constexpr size_t operand = 0, norm_scale = 1, norm_shift = 2;
inline constexpr size_t first = 3, each = 5;
/// Of a product; only packed weights have `scales`.
enum slot : size_t { weights, scales, zeros, bias, residual };

/// Of the rotary embedding.
enum angle : size_t { cosines, sines, positions };
inline constexpr size_t angles = 3;

inline constexpr size_t last_scale = first + each, last_shift = last_scale + 1;

/// Returns the input that slot `s` of product `p` is.
constexpr size_t input(size_t p, slot s) {
  return first + p * each + s;
}
/// Returns the input that an operand of the rotary embedding is, in a call of that many products.
constexpr size_t input(size_t products, angle a) {
  return first + products * each + a;
}
} // namespace projection

/// The most products that one call may have.
inline constexpr int64_t most_projections = 4;

/// What the attributes say.
struct projection_attributes {
  size_t products = 0;
  bool gated = false;
  bool wide = false;                 // results are float32, whatever the operand
  std::string norm, last_norm;       // before and after the products, "" for none
  std::string rotary;                // the operator that rotates results, "" for none
  std::vector<int64_t> rotary_heads; // by product, if any is rotated: 0 for those that are not

  explicit projection_attributes(const attributes& attrs);

  bool is_rotated(size_t p) const { return !rotary.empty() && rotary_heads[p] > 0; }
  /// Returns the domain of `rotary`.
  std::string_view rotary_domain() const { return rotary == "Rotary" ? "troupe" : ""; }
};

/// Returns the calls that make up a call with these operands; throws `errc::invalid_model` if it is not valid.
call_parts parts_of_projections(const attributes& attrs, std::span<const operand> inputs,
                                std::span<const operand> outputs);

} // namespace troupe
