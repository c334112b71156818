// The broadcast of opsets 1 to 6: with attribute `broadcast`, b's dims are a contiguous run of a's that starts at
// `axis` (by default they are the last ones); without it, both have the same dims. The rewrite replaces it
// (rewrite/modern_broadcast.cpp): what is here is for constants that are folded before.
#pragma once

#include "ops/infer.hpp"

namespace troupe {

/// Returns the dims of b such that NumPy's broadcast puts them where the attributes say. Throws `errc::invalid_model`
/// where they have no room there.
template <class Dims>
Dims aligned_operand(const attributes& attrs, const Dims& a, Dims b) {
  const size_t rank = a.size();
  if (b.size() > rank)
    fail(errc::invalid_model, "the second operand has rank {}, the first only {}", b.size(), rank);
  if (attrs.integer("broadcast", 0) == 0 || !attrs.has("axis") || b.size() == rank)
    return b;
  const size_t axis = normalize_axis(attrs.integer("axis"), rank);
  if (axis + b.size() > rank)
    fail(errc::invalid_model, "axis {} leaves no room for {} dims in rank {}", axis, b.size(), rank);
  b.resize(rank - axis, 1);
  return b;
}

/// Throws `errc::invalid_model` unless input 1 broadcasts to input 0's dims, as far as they are known.
inline void check_limited_broadcast(const infer_context& c) {
  const symbolic_shape& a = c.dims(0);
  const symbolic_shape b = aligned_operand(c.attrs(), a, c.dims(1));
  for (size_t i = 0; i < b.size(); ++i) {
    const dim &from = b[b.size() - 1 - i], &to = a[a.size() - 1 - i];
    if (from.is_constant() && to.is_constant() && !from.is(1) && !(from == to))
      fail(errc::invalid_model, "shape {} cannot be broadcast to {}", to_string(c.dims(1)), to_string(a));
  }
}

/// Output 0 has input 0's dims and the inputs' common type.
inline void infer_limited_broadcast(infer_context& c) {
  check_limited_broadcast(c);
  c.set_output(0, common_type(c), c.dims(0));
}

/// Output 0 is a bool of input 0's dims; inputs have one type.
inline void infer_limited_comparison(infer_context& c) {
  check_limited_broadcast(c);
  common_type(c);
  c.set_output(0, dtype::boolean, c.dims(0));
}

/// Input 1 under dims that broadcast as NumPy's do.
class limited_operand {
public:
  /// Throws `errc::invalid_model` if `axis` is out of range.
  explicit limited_operand(const kernel_context& c)
      : source_(c.input(1)), dims_(aligned_operand(c.attrs(), shape(c.input(0).dims.begin(), c.input(0).dims.end()),
                                                   shape(source_.dims.begin(), source_.dims.end()))) {}

  /// Valid while this object lives.
  const_view view() const { return {source_.type, dims_, source_.data}; }

private:
  const_view source_;
  shape dims_;
};

} // namespace troupe
