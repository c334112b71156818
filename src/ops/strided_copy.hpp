// Copies between strided arrays: the one engine of Transpose, Slice, Expand, Tile, Concat and Split.
//
// An operator that only moves elements describes itself as axes (size, step in the source, step in the destination);
// the engine drops and merges axes, then runs the best inner loop: long memcpy runs, fills, or a blocked transposition.
#pragma once

#include "tensor/elements.hpp"

#include <cstring>

namespace troupe {

/// One axis of a copy: how many elements, and how many elements apart they are on either side (0 and negative allowed).
struct copy_axis {
  int64_t size = 1;
  int64_t from = 0;
  int64_t to = 0;
};

/// What operators that only move elements take: everything but the packed types.
inline constexpr dtype_set movable_types = types::fixed_size | types::string | (types::small_floats & ~types::packed);

/// Returns the bytes between two elements; throws `errc::unsupported` for packed types.
int64_t element_size(dtype type);

/// Returns the address of element `index` of an array of `type`.
inline const void* element_at(dtype type, const void* base, int64_t index) {
  return static_cast<const char*>(base) + index * element_size(type);
}
inline void* element_at(dtype type, void* base, int64_t index) {
  return static_cast<char*>(base) + index * element_size(type);
}

/// Calls `f(type_tag<T>{})` with std::string, or an unsigned integer as wide as `type`'s elements.
template <class F>
decltype(auto) visit_movable(dtype type, F&& f) {
  if (type == dtype::string)
    return f(type_tag<std::string>{});
  return visit_width(type, std::forward<F>(f));
}

/// Copies `count` neighbouring elements.
template <class T>
void copy_run(const T* from, T* to, int64_t count) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (count >= 8) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
      return;
    }
  }
  for (int64_t i = 0; i < count; ++i)
    to[i] = from[i];
}

/// Copies all elements of `from` to `to`, which has the same type and volume, in parallel if that pays.
void copy_all(const const_view& from, const mutable_view& to);

/// Copies the elements that `axes` (outermost first) describe. `from` and `to` are the addresses of the first element.
/// The destinations must be distinct.
void copy_strided(dtype type, const void* from, void* to, std::vector<copy_axis> axes);

/// Calls `body(from, to)` with the element offsets of the positions [begin, end), counted row-major over `axes`.
template <class F>
void walk(std::span<const copy_axis> axes, int64_t begin, int64_t end, F&& body) {
  std::vector<int64_t> at(axes.size());
  int64_t from = 0, to = 0, rest = begin;
  for (size_t i = axes.size(); i-- > 0; rest /= std::max<int64_t>(axes[i].size, 1)) {
    at[i] = rest % std::max<int64_t>(axes[i].size, 1);
    from += at[i] * axes[i].from;
    to += at[i] * axes[i].to;
  }
  for (int64_t position = begin; position < end; ++position) {
    body(from, to);
    for (size_t i = axes.size(); i-- > 0;) {
      from += axes[i].from;
      to += axes[i].to;
      if (++at[i] < axes[i].size)
        break;
      from -= axes[i].size * axes[i].from;
      to -= axes[i].size * axes[i].to;
      at[i] = 0;
    }
  }
}

} // namespace troupe
