// Parameter blocks and constants of the shaders: C++ and GLSL read the same headers (shaders/parameters). A launch rule
// names the members of a block; those that it leaves out are 0.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {
namespace shader {

/// GLSL's uint, made of any integer: its low word.
struct uint {
  uint32_t word = 0;

  constexpr uint() = default;
  template <std::integral T>
  constexpr uint(T value) : word(static_cast<uint32_t>(value)) {}
  constexpr operator uint32_t() const { return word; }
};

struct alignas(8) uvec2 {
  uint x, y;
};
template <class T>
struct alignas(16) four {
  T x, y, z, w;

  constexpr T& operator[](size_t i) { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; }
};
using uvec4 = four<uint>;
using vec4 = four<float>;
using ivec4 = uvec4;

#include "shaders/parameters/attention.h"
#include "shaders/parameters/attention_flags.h"
#include "shaders/parameters/attention_join.h"
#include "shaders/parameters/attention_projection.h"
#include "shaders/parameters/attention_row.h"
#include "shaders/parameters/attention_scores.h"
#include "shaders/parameters/batch_norm.h"
#include "shaders/parameters/broadcast.h"
#include "shaders/parameters/broadcast_chain.h"
#include "shaders/parameters/col2im.h"
#include "shaders/parameters/concat.h"
#include "shaders/parameters/contraction.h"
#include "shaders/parameters/conv.h"
#include "shaders/parameters/conv_integer.h"
#include "shaders/parameters/conv_transpose.h"
#include "shaders/parameters/copy_rows.h"
#include "shaders/parameters/deform_conv.h"
#include "shaders/parameters/depthwise.h"
#include "shaders/parameters/det.h"
#include "shaders/parameters/element_count.h"
#include "shaders/parameters/element_type.h"
#include "shaders/parameters/fill.h"
#include "shaders/parameters/fourier.h"
#include "shaders/parameters/gather.h"
#include "shaders/parameters/gather_elements.h"
#include "shaders/parameters/gather_nd.h"
#include "shaders/parameters/global_pool.h"
#include "shaders/parameters/grid_sample.h"
#include "shaders/parameters/group_norm.h"
#include "shaders/parameters/gru.h"
#include "shaders/parameters/integer_product.h"
#include "shaders/parameters/layer_norm.h"
#include "shaders/parameters/linear_attention.h"
#include "shaders/parameters/local_norm.h"
#include "shaders/parameters/loss.h"
#include "shaders/parameters/lrn.h"
#include "shaders/parameters/mask_ranges.h"
#include "shaders/parameters/matmul.h"
#include "shaders/parameters/matmul_integer.h"
#include "shaders/parameters/max_unpool.h"
#include "shaders/parameters/nbits.h"
#include "shaders/parameters/nbits_zeros.h"
#include "shaders/parameters/normalization.h"
#include "shaders/parameters/normalization_phase.h"
#include "shaders/parameters/one_hot.h"
#include "shaders/parameters/pad.h"
#include "shaders/parameters/pool.h"
#include "shaders/parameters/pool_kind.h"
#include "shaders/parameters/predicate.h"
#include "shaders/parameters/product.h"
#include "shaders/parameters/projections.h"
#include "shaders/parameters/quantization.h"
#include "shaders/parameters/quantized.h"
#include "shaders/parameters/quantized_elementwise.h"
#include "shaders/parameters/range.h"
#include "shaders/parameters/recurrent.h"
#include "shaders/parameters/recurrent_flags.h"
#include "shaders/parameters/recurrent_project.h"
#include "shaders/parameters/reduce.h"
#include "shaders/parameters/reduce_walk.h"
#include "shaders/parameters/resample.h"
#include "shaders/parameters/resize.h"
#include "shaders/parameters/reverse_sequence.h"
#include "shaders/parameters/roi_align.h"
#include "shaders/parameters/rotary.h"
#include "shaders/parameters/row_extent.h"
#include "shaders/parameters/scatter.h"
#include "shaders/parameters/scatter_elements.h"
#include "shaders/parameters/scatter_nd.h"
#include "shaders/parameters/softmax.h"
#include "shaders/parameters/split_sum.h"
#include "shaders/parameters/strided_copy.h"
#include "shaders/parameters/team.h"
#include "shaders/parameters/tensor_scatter.h"
#include "shaders/parameters/top_k.h"
#include "shaders/parameters/transpose.h"
#include "shaders/parameters/trilu.h"

#undef PARAMETERS
#undef CONSTANT

/// Whether the number of an enumerator is the one that a shader gives it.
template <class E>
constexpr bool is(E enumerator, uint32_t number) {
  return static_cast<uint32_t>(enumerator) == number;
}

} // namespace shader

/// Returns a parameter block as words. A block has no padding but its unused members, or this does not compile.
template <class P>
std::vector<uint32_t> words_of(const P& block) {
  using words = std::array<uint32_t, sizeof(P) / sizeof(uint32_t)>;
  static_assert(!std::bit_cast<words>(P{}).empty());
  const auto w = std::bit_cast<words>(block);
  return {w.begin(), w.end()};
}

} // namespace troupe
