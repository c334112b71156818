// The equation of an Einsum, read.
#pragma once

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

} // namespace troupe
