// What shape inference does with dims (troupe/dim.hpp) beyond sums and products.
//
// A dim is a polynomial with integer coefficients over atoms; an atom is a symbol or an operation that a polynomial
// cannot express (floor division, min, max, broadcast). Expressions are built once for each model (shape inference) and
// compiled into a `dim_program`; binding concrete symbol values then only evaluates that program.
#pragma once

#include "troupe/dim.hpp"

namespace troupe {

/// Returns whether the value is provably ≥ 0: symbols are (they count elements), and so are sums and products of them.
bool is_nonnegative(const dim& d);

/// Returns ⌊a / b⌋; exact polynomial division if every term divides. Evaluation throws if b is 0.
dim floor_div(const dim& a, const dim& b);
/// Returns ⌈a / b⌉.
dim ceil_div(const dim& a, const dim& b);
dim min(const dim& a, const dim& b);
dim max(const dim& a, const dim& b);
/// Returns the broadcast of two dims: equal, or one of them 1. Throws `errc::invalid_model` if two constants do not
/// fit; two symbolic dims are checked when they are bound.
dim broadcast(const dim& a, const dim& b);

/// Returns the product of the dims.
dim volume(std::span<const dim> dims);
/// Returns the NumPy-broadcast shape.
symbolic_shape broadcast(std::span<const dim> a, std::span<const dim> b);
/// Returns whether no dim is symbolic.
bool is_constant(std::span<const dim> dims);
/// Returns the dims as integers; requires `is_constant(dims)`.
std::vector<int64_t> constants(std::span<const dim> dims);
symbolic_shape to_symbolic(std::span<const int64_t> dims);

} // namespace troupe
