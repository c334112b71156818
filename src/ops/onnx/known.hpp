// Host-known values through elementwise operators: shape arithmetic on symbolic dims, once for each model.
//
// The rules compute with mathematical integers. A result that would wrap in its element type is not stated (the kernel
// computes it instead); one that depends on symbols is taken to fit int32 and int64, since it means a dim or an index.
#pragma once

#include "ops/op.hpp"

namespace troupe {

/// One element's rule: nullopt if nothing is known about the result.
using known_unary = std::optional<dim> (*)(const dim& a);
using known_binary = std::optional<dim> (*)(const dim& a, const dim& b);

/// States output 0's elements (type and constant dims already set) by a rule, if the operands' elements are known.
void set_known_unary(infer_context& c, dtype type, known_unary rule);

/// The same for two or more broadcast operands, from the left.
void set_known_binary(infer_context& c, dtype type, const symbolic_shape& dims, known_binary rule);

/// Where: the condition's elements must be decided, the branches known.
void set_known_where(infer_context& c, dtype type, const symbolic_shape& dims);

/// Rules. Comparisons give 1, 0 or nullopt if the order cannot be proved.
namespace known {
std::optional<dim> same(const dim& a);
std::optional<dim> negative(const dim& a);
std::optional<dim> absolute(const dim& a);
std::optional<dim> truth(const dim& a);
std::optional<dim> negation(const dim& a);
std::optional<dim> add(const dim& a, const dim& b);
std::optional<dim> subtract(const dim& a, const dim& b);
std::optional<dim> multiply(const dim& a, const dim& b);
/// Truncated division, for divisors that are positive.
std::optional<dim> divide(const dim& a, const dim& b);
/// Remainder with the divisor's sign, for divisors that are positive.
std::optional<dim> modulo(const dim& a, const dim& b);
std::optional<dim> smaller(const dim& a, const dim& b);
std::optional<dim> larger(const dim& a, const dim& b);
std::optional<dim> equal(const dim& a, const dim& b);
std::optional<dim> greater(const dim& a, const dim& b);
std::optional<dim> greater_or_equal(const dim& a, const dim& b);
std::optional<dim> less(const dim& a, const dim& b);
std::optional<dim> less_or_equal(const dim& a, const dim& b);
std::optional<dim> both(const dim& a, const dim& b);
std::optional<dim> either(const dim& a, const dim& b);
} // namespace known

} // namespace troupe
