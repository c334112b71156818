// The inside of `dim`: polynomials over atoms. Included by dim.cpp, dim_program.cpp, element_symbols.cpp,
// ops/graph_hash.cpp and wire/dims only.
#pragma once

#include "graph/dim.hpp"

namespace troupe {

/// What a polynomial cannot express.
struct dim_atom {
  enum class operation : uint8_t { symbol, floor_div, min, max, broadcast };
  operation op;
  std::string name;      // of a symbol: any text
  std::vector<dim> args; // of an operation: two
  std::string key;       // canonical text: orders and identifies atoms; quotes around a name that is not a plain word
};

/// coefficient × factors[0] × factors[1] × …
struct dim_term {
  int64_t coefficient;
  std::vector<std::shared_ptr<const dim_atom>> factors; // sorted by key, repeated for powers
  std::string key;                                      // the factors' keys joined; empty for the constant term
};

/// A sum of terms, sorted by key; never empty, never a lone constant (that is a plain integer), no zero coefficient.
struct dim_polynomial {
  std::vector<dim_term> terms;

  /// Returns a dim's polynomial; null for a constant.
  static const std::shared_ptr<const dim_polynomial>& of(const dim& d) { return d.polynomial_; }
  static dim make_dim(std::shared_ptr<const dim_polynomial> polynomial) { return dim(std::move(polynomial)); }
};

/// Returns a text that equal dims have in common, and no others: what is compared and hashed. `dim::to_string` is for
/// people.
std::string canonical_text(const dim& d);

/// Returns `op` applied to two integers; throws `errc::invalid_input` where it is not defined for them.
int64_t apply_dim_operation(dim_atom::operation op, int64_t a, int64_t b);

} // namespace troupe
