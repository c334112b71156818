// The broadcast of opsets 1 to 6: with attribute `broadcast`, b's dims are a contiguous run of a's that starts at `axis`
// (by default they are the last ones); without it, both have the same dims.
#pragma once

#include "ops/infer.hpp"

namespace troupe {

/// Output 0 has input 0's dims and the inputs' common type.
inline void infer_limited_broadcast(infer_context& c) {
  c.set_output(0, common_type(c), c.dims(0));
}

/// Output 0 is a bool of input 0's dims; inputs have one type.
inline void infer_limited_comparison(infer_context& c) {
  common_type(c);
  c.set_output(0, dtype::boolean, c.dims(0));
}

/// Input 1 under dims that broadcast as NumPy's do.
class limited_operand {
public:
  /// Throws `errc::invalid_model` where `axis` is out of range.
  explicit limited_operand(const kernel_context& c) : source_(c.input(1)) {
    dims_.assign(source_.dims.begin(), source_.dims.end());
    const size_t rank = c.input(0).dims.size();
    if (c.attrs().integer("broadcast", 0) == 0 || !c.attrs().has("axis") || dims_.size() >= rank)
      return;
    const size_t axis = normalize_axis(c.attrs().integer("axis"), rank);
    if (axis + dims_.size() > rank)
      fail(errc::invalid_model, "axis {} leaves no room for {} dims in rank {}", axis, dims_.size(), rank);
    dims_.resize(rank - axis, 1);
  }

  /// Valid while this object lives.
  const_view view() const { return {source_.type, dims_, source_.data}; }

private:
  const_view source_;
  shape dims_;
};

} // namespace troupe
