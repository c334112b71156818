#include "vulkan/cache_rows.hpp"

#include "ops/head_layout.hpp"
#include "plan/bind/layout_buckets.hpp"

#include <algorithm>

namespace troupe::vulkan {
namespace {

int64_t row_words(dtype type, const shape& dims) {
  return bytes_of(type, dims[3]) / row_word_bytes;
}

/// Where rows of a cache are, from position `first` on.
shader::uvec4 steps_of(dtype type, const shape& dims, cache_order order, int64_t first = 0) {
  const int64_t words = row_words(type, dims), batch = dims[0], heads = dims[1], positions = dims[2];
  if (order == cache_order::rows_first)
    return {first * batch * heads * words, words, heads * words, batch * heads * words};
  return {first * words, positions * words, heads * positions * words, words};
}

} // namespace

row_steps one_row(int64_t bytes) {
  return {{bytes / row_word_bytes, 1, 1, 1}, {}, {}};
}

row_steps reorder_rows(dtype type, const shape& dims, cache_order from, cache_order to) {
  return {{row_words(type, dims), dims[1], dims[0], dims[2]}, steps_of(type, dims, from), steps_of(type, dims, to)};
}

row_steps append_rows(const bound_plan& bound, const cache_append& append) {
  const graph& program = *bound.source->program;
  const shape &past = bound.dims[append.past], &fresh = bound.dims[append.fresh];
  const dtype type = program.values[append.past].type;
  const int64_t words = row_words(type, past), batch = past[0], heads = past[1],
                rows = bound.dims[append.present][2] - past[2];
  const bool bshd = is_bshd(program.nodes[append.node].attrs, "new_layout");
  row_steps copy{{words, heads, batch, rows}, {}, steps_of(type, past, cache_order::rows_first, past[2])};
  copy.from =
      bshd ? shader::uvec4{0, words, rows * heads * words, heads * words} : steps_of(type, fresh, cache_order::usual);
  return copy;
}

int64_t position_bytes(dtype type, const shape& dims) {
  return bytes_of(type, dims[0] * dims[1] * dims[3]);
}

int64_t room_for(const bound_plan& bound, const cache_append& append) {
  return std::max(bound.layout->dims[append.present][2], bucket_capacity(bound.dims[append.present][2]));
}

std::vector<uint32_t> row_copy_words(std::span<const row_steps> copies) {
  shader::copy_rows block{};
  for (size_t i = 0; i < copies.size(); ++i) {
    block.sizes[i] = copies[i].sizes;
    block.from[i] = copies[i].from;
    block.to[i] = copies[i].to;
  }
  return words_of(block);
}

uint32_t row_copy_groups(int64_t words) {
  // A word an invocation: one that reads over the bus waits for each.
  constexpr int64_t group_words = 256, most = 512;
  return static_cast<uint32_t>(std::clamp<int64_t>((words + group_words - 1) / group_words, 1, most));
}

} // namespace troupe::vulkan
