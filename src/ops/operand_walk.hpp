// How kernels walk over operands: sizes and steps along the axes of an output in its memory order, innermost first,
// axes merged wherever every operand allows it.
#pragma once

#include "ops/call.hpp"

#include <algorithm>

namespace troupe {

/// See the top of this file. `strides[k]` are operand k's steps in elements along `dims`; 0 where it is repeated.
struct operand_walk {
  shape dims;
  std::vector<shape> strides;
};

/// Returns an operand's strides in elements along its logical axes, as its layout says.
shape layout_strides(const operand& o);

/// Returns the walk over `out` of operands that broadcast to it; throws `errc::invalid_input` if one does not fit.
operand_walk walk_of(const operand& out, std::span<const operand> operands);

/// Merges neighbouring axes and drops those of size 1; `walk.dims` is never empty afterwards.
void merge_axes(operand_walk& walk);

/// How kernels find an operand's elements: as the output's, one for all, or by strides.
enum class walk_mode : uint32_t { like_output, single, strided };

/// Returns the mode of operand `k`.
walk_mode mode_of(const operand_walk& walk, size_t k);

/// Converts elements [begin, begin + count) of operand `k`, in the walk's order, into `to`.
template <class T, class C>
void gather(const operand_walk& walk, size_t k, const T* from, int64_t begin, int64_t count, C* to) {
  const shape& strides = walk.strides[k];
  const int64_t inner = walk.dims[0], step = strides[0];
  for (int64_t done = 0; done < count;) {
    const int64_t column = (begin + done) % inner, run = std::min(inner - column, count - done);
    int64_t row = (begin + done) / inner, offset = column * step;
    for (size_t axis = 1; axis < strides.size(); row /= walk.dims[axis++])
      offset += row % walk.dims[axis] * strides[axis];
    if (step == 0)
      std::fill_n(to + done, run, static_cast<C>(from[offset]));
    else
      for (int64_t i = 0; i < run; ++i)
        to[done + i] = static_cast<C>(from[offset + i * step]);
    done += run;
  }
}

/// Longest walk that GPU kernels take, after merging.
inline constexpr size_t max_walk_rank = 8;

} // namespace troupe
