// The activation that ends a fused convolution or matrix product: y = act(x), a scalar function of one value.
//
// Attributes of a fused node: `activation` (a name in scalar_function.hpp, absent for none), `activation_alpha`,
// `activation_beta` (floats: the function's numbers).
#pragma once

#include "ops/scalar_function.hpp"

namespace troupe {

struct activation {
  scalar_code code = scalar_code::same;
  float alpha = 0, beta = 0;

  bool operator==(const activation&) const = default;
};

/// Reads a fused node's attributes; throws `errc::invalid_model` for an unknown name.
activation parse_activation(const attributes& attrs);

/// Writes the attributes that `parse_activation` reads.
void set_activation(attributes& attrs, const activation& act);

/// Applies an activation to `count` elements in place; `T` is float or double.
template <class T>
void apply(const activation& act, T* x, int64_t count);

} // namespace troupe
