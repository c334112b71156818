// Calls of troupe.Attention that read some of the heads of their operands.
#pragma once

#include "graph/attributes.hpp"
#include "ops/head_layout.hpp"
#include "troupe/tensor.hpp"

#include <limits>
#include <vector>

namespace troupe::test {

/// Returns float32 heads, [B, H, S, D] or [B, S, H, D] if `bshd`, with `before` heads in front of them and `after`
/// after: those are NaN.
inline tensor among_heads(const tensor& heads, bool bshd, int64_t before, int64_t after) {
  shape dims = heads.dims();
  const size_t axis = bshd ? 2 : 1;
  const int64_t rows = dims[0] * (bshd ? dims[1] : 1), width = dims[3] * (bshd ? 1 : dims[2]), own = dims[axis] * width;
  dims[axis] += before + after;
  tensor all(dtype::float32, dims);
  const float* from = heads.data<float>();
  float* to = all.mutable_data<float>();
  for (int64_t r = 0; r < rows; ++r, from += own) {
    to = std::fill_n(to, before * width, std::numeric_limits<float>::quiet_NaN());
    to = std::copy_n(from, own, to);
    to = std::fill_n(to, after * width, std::numeric_limits<float>::quiet_NaN());
  }
  return all;
}

/// Puts inputs 0, 1 and 2 of a call among other heads, which its attributes then leave out.
inline void put_among_heads(std::vector<tensor>& inputs, attributes& attrs) {
  struct place {
    const char* layout;
    int64_t before, after;
  };
  constexpr std::array<place, 3> places{{{"q_layout", 0, 3}, {"kv_layout", 2, 1}, {"kv_layout", 5, 0}}};
  for (size_t i = 0; i < places.size(); ++i) {
    const bool bshd = is_bshd(attrs, places[i].layout);
    const int64_t count = inputs[i].dims()[bshd ? 2 : 1];
    inputs[i] = among_heads(inputs[i], bshd, places[i].before, places[i].after);
    attrs.set(std::string(head_attributes[i]), std::vector<int64_t>{places[i].before, count});
  }
}

} // namespace troupe::test
