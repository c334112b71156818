// The equation of an Einsum, read.
#pragma once

#include "graph/dim.hpp"
#include "tensor/shape.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace troupe {

/// Axes of a term: letters, or −1, −2 … for the axes of an ellipsis, counted from its back.
using einsum_axes = std::vector<int>;

struct einsum_equation {
  std::vector<einsum_axes> terms; // by operand
  einsum_axes output;
};

/// Reads an equation for operands of these ranks; throws `errc::invalid_model` where it does not fit them.
einsum_equation parse_einsum(std::string text, const std::vector<size_t>& ranks);

/// The loops of an equation: output axes first, then the summed ones; strides[operand][axis].
struct einsum_nest {
  shape extents;
  size_t output_axes;
  std::vector<shape> strides;
};

/// Returns the loops for operands of these dims, which must be constant. Throws `errc::invalid_model` where they do not
/// fit each other.
einsum_nest nest_of(const einsum_equation& e, const std::vector<symbolic_shape>& shapes);

} // namespace troupe
