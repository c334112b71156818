// The activation that ends a fused convolution or matrix product: y = act(x), as attributes and as a function.
//
// Attributes of a fused node: `activation` (a name below, absent for none), `activation_alpha`, `activation_beta` (floats).
#pragma once

#include "graph/attributes.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

/// Which function; the attribute's text is the enumerator's ONNX name.
enum class activation_kind : uint8_t {
  none,         // x
  relu,         // "Relu": max(x, 0)
  clip,         // "Clip": min(max(x, alpha), beta)
  sigmoid,      // "Sigmoid": 1 / (1 + e^-x)
  tanh,         // "Tanh"
  hard_swish,   // "HardSwish": x · max(0, min(1, x / 6 + 0.5))
  hard_sigmoid, // "HardSigmoid": max(0, min(1, alpha · x + beta))
  leaky_relu,   // "LeakyRelu": x < 0 ? alpha · x : x
  swish,        // "Swish": x / (1 + e^(-alpha · x)); SiLU is alpha = 1
  gelu,         // "Gelu": x / 2 · (1 + erf(x / √2))
  gelu_tanh,    // "GeluTanh": x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))
};

struct activation {
  activation_kind kind = activation_kind::none;
  float alpha = 0, beta = 0;

  bool operator==(const activation&) const = default;
};

/// Returns the attribute text of a kind, e.g. "Relu"; "" for none.
std::string_view to_string(activation_kind kind);

/// Reads a fused node's attributes; throws `errc::invalid_model` for an unknown name.
activation parse_activation(const attributes& attrs);

/// Writes the attributes that `parse_activation` reads.
void set_activation(attributes& attrs, const activation& act);

/// Selu's defaults; until opset 5, selu_1.
inline constexpr float selu_alpha = 1.67326319218681884765625f, selu_gamma = 1.05070102214813232421875f;
inline constexpr float selu_1_alpha = 1.6732f, selu_1_gamma = 1.0507f;

/// Applies an activation to `count` elements in place; `T` is float or double.
template <class T>
void apply(const activation& act, T* x, int64_t count);

} // namespace troupe
