// Sequences and optionals that a run is given: what is in them, compared with what the model declares.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// Returns whether a value holds tensors of which not even the rank is known.
inline bool has_open_elements(const value& v) {
  return is_container(v.type) && !v.elements.dims;
}

/// Returns whether its own rank is not known, or that of what it holds.
inline bool has_open_rank(const value& v) {
  return !v.dims || has_open_elements(v);
}

/// Throws `errc::invalid_input`, naming the input, if `given`, which has the declared type, holds tensors of another
/// type or shape than that says, or an optional more than one.
void check_container(const value& declared, const tensor& given);

/// Returns the rank of the tensors in a sequence or optional: dims of −1, or none if ranks differ.
element_shapes ranks_in(const tensor& container);

} // namespace troupe
