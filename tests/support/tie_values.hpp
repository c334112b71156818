// Floats whose quotients, roots and multiples are such that the last bit decides how they are rounded. The same for
// each call.
#pragma once

#include <cstddef>
#include <vector>

namespace troupe::test {

/// Operands of quotients a[i] / b[i].
struct float_pairs {
  std::vector<float> a, b;
};

/// Quotients as close to the middle between two floats as quotients of floats can be.
float_pairs quotients_beside_ties(size_t count);

/// Normal numbers of any size and sign; quotients overflow now and then.
float_pairs any_pairs(size_t count);

/// Operands or quotients are subnormal.
float_pairs subnormal_pairs(size_t count);

/// a is `(n + part) · b`, for whole n below `limit` in both signs, or a neighbour of that.
float_pairs beside_multiples(size_t count, float part, int limit);

/// Squares of whole numbers and their neighbours.
std::vector<float> beside_squares(size_t count);

} // namespace troupe::test
