// What passes over quantised models look for: values that are dequantised or quantised with one scale.
#pragma once

#include "rewrite/editor.hpp"

#include <optional>

namespace troupe {

/// 8-bit elements with their scale (float32) and zero point (no_value: 0), each a single element.
struct quantised_tensor {
  value_id elements, scale, zero;
};

/// Returns what `v` is DequantizeLinear of, if that makes float32 of bytes with one scale.
std::optional<quantised_tensor> dequantised_tensor(const graph_editor& e, value_id v);

/// The same for a constant; scale and zero point have one element, or one for each position along an axis.
struct quantised_weight {
  weight_ptr elements, scale, zero; // zero: null for 0
};

/// Returns what constant `v` is DequantizeLinear of, perhaps transposed; scales are for the whole or along `axis`.
/// `matrix`: only of rank 2.
std::optional<quantised_weight> dequantised_weight(const graph_editor& e, value_id v, int64_t axis, bool matrix);

/// Returns what QuantizeLinear node `n` makes of float32: bytes with one scale. A zero point that is not there is added
/// if the type needs it.
std::optional<quantised_tensor> quantisation_of(graph_editor& e, node_id n);

/// Returns whether two scales and two zero points are the same values or equal constants.
bool same_quantisation(const graph_editor& e, const quantised_tensor& a, const quantised_tensor& b);

/// Returns whether the rewrite keeps a node over constants as a recipe however small its result is, so that these
/// functions can look through it: DequantizeLinear of bytes with two dims or more, and Transpose of that.
bool is_kept_recipe(const graph& g, const node& n);

} // namespace troupe
