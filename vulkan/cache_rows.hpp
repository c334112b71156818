// How rows of caches are copied, as plain data; no Vulkan call. A cache of attention, [batch, heads, positions, width],
// is stored in this order as any value does, or, if it is to grow where it is, with its positions first: then more of
// them need no more than room at its end.
#pragma once

#include "launch/parameters.hpp"
#include "plan/bind/bound_plan.hpp"
#include "plan/cut/cache_appends.hpp"

namespace troupe::vulkan {

/// Bytes of the words in which rows are copied.
inline constexpr int64_t row_word_bytes = 16;

/// One copy as shaders/copy_rows.comp does it, in words.
struct row_steps {
  shader::uvec4 sizes, from, to;

  int64_t words() const { return int64_t{sizes.x} * sizes.y * sizes.z * sizes.w; }
};

/// The order of a cache's elements in memory.
enum class cache_order : uint8_t { usual, rows_first };

/// Returns the copy of some bytes, whole words, as one row.
row_steps one_row(int64_t bytes);

/// Returns the copy of all rows of a cache from one order to another.
row_steps reorder_rows(dtype type, const shape& dims, cache_order from, cache_order to);

/// Returns the copy of the new rows of an append to the end of a cache whose rows are first.
row_steps append_rows(const bound_plan& bound, const cache_append& append);

/// Bytes of all rows of one position.
int64_t position_bytes(dtype type, const shape& dims);

/// Returns how many positions a cache that is made for an append gets room for: as many as the layout has, or
/// `bucket_capacity`.
int64_t room_for(const bound_plan& bound, const cache_append& append);

/// Returns the parameters of one dispatch, which does at most `shader::copy_rows_each` copies.
std::vector<uint32_t> row_copy_words(std::span<const row_steps> copies);

/// Returns the number of groups that share the longest of some copies, of `words` words; not more than fill a large
/// GPU.
uint32_t row_copy_groups(int64_t words);

} // namespace troupe::vulkan
