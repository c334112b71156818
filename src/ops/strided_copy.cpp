#include "ops/strided_copy.hpp"

#include "base/parallel.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Elements a thread should move before another one pays.
constexpr int64_t copy_grain = 32 * 1024;
/// Edge of a transposed block: 32 × 32 elements of up to 8 bytes stay in the first-level cache on both sides.
constexpr int64_t copy_block = 32;

int64_t positions(std::span<const copy_axis> axes) {
  int64_t count = 1;
  for (const auto& axis : axes)
    count *= axis.size;
  return count;
}

/// Drops axes of size 1 and merges neighbours that are one longer axis on both sides.
std::vector<copy_axis> simplified(const std::vector<copy_axis>& axes) {
  std::vector<copy_axis> out;
  for (const copy_axis& axis : axes) {
    if (axis.size == 1)
      continue;
    const bool merges =
        !out.empty() && out.back().from == axis.size * axis.from && out.back().to == axis.size * axis.to;
    if (merges)
      out.back() = {out.back().size * axis.size, axis.from, axis.to};
    else
      out.push_back(axis);
  }
  return out;
}

template <class T>
void copy_line(const T* from, T* to, const copy_axis& axis) {
  if (axis.from == 1 && axis.to == 1) {
    copy_run(from, to, axis.size);
  } else if (axis.from == 0 && axis.to == 1) {
    std::fill_n(to, axis.size, *from);
  } else {
    for (int64_t i = 0; i < axis.size; ++i)
      to[i * axis.to] = from[i * axis.from];
  }
}

/// Line by line along the last axis.
template <class T>
void copy_lines(const T* from, T* to, std::span<const copy_axis> axes) {
  const copy_axis line = axes.back();
  const auto outer = axes.first(axes.size() - 1);
  if (outer.empty()) {
    parallel_for(line.size, copy_grain, [&](int64_t begin, int64_t end) {
      copy_line(from + begin * line.from, to + begin * line.to, {end - begin, line.from, line.to});
    });
    return;
  }
  parallel_for(positions(outer), std::max<int64_t>(1, copy_grain / line.size), [&](int64_t begin, int64_t end) {
    walk(outer, begin, end, [&](int64_t f, int64_t t) { copy_line(from + f, to + t, line); });
  });
}

/// Blocks of two axes: `row` is dense in the source, `column` (the last axis) in the destination.
template <class T>
void copy_blocks(const T* from, T* to, std::vector<copy_axis> outer, const copy_axis& row, const copy_axis& column) {
  const int64_t blocks = (row.size + copy_block - 1) / copy_block;
  const int64_t count = positions(outer) * blocks;
  parallel_for(count, std::max<int64_t>(1, copy_grain / (copy_block * column.size)), [&](int64_t begin, int64_t end) {
    for (int64_t position = begin; position < end; ++position)
      walk(outer, position / blocks, position / blocks + 1, [&](int64_t f, int64_t t) {
        const int64_t first = position % blocks * copy_block, last = std::min(first + copy_block, row.size);
        for (int64_t c = 0; c < column.size; c += copy_block) {
          const int64_t c_end = std::min(c + copy_block, column.size);
          for (int64_t r = first; r < last; ++r)
            for (int64_t i = c; i < c_end; ++i)
              to[t + r * row.to + i * column.to] = from[f + r * row.from + i * column.from];
        }
      });
  });
}

template <class T>
void copy_typed(const T* from, T* to, const std::vector<copy_axis>& axes) {
  const copy_axis last = axes.back();
  const auto dense = std::find_if(axes.begin(), axes.end() - 1, [](const auto& a) { return a.from == 1; });
  if (last.from == 0 || last.from == 1 || last.to != 1 || dense == axes.end() - 1) {
    copy_lines<T>(from, to, axes);
    return;
  }
  std::vector<copy_axis> outer(axes.begin(), axes.end() - 1);
  outer.erase(outer.begin() + (dense - axes.begin()));
  copy_blocks<T>(from, to, std::move(outer), *dense, last);
}

} // namespace

int64_t element_size(dtype type) {
  if (holds_objects(type))
    return bytes_of(type, 1);
  if (bits_of(type) < 8)
    fail(errc::unsupported, "elements of type {} cannot be moved one by one", to_string(type));
  return bits_of(type) / 8;
}

void copy_all(const const_view& from, const mutable_view& to) {
  if (from.size() != to.size())
    fail(errc::invalid_input, "{} elements of shape {} do not fit shape {}", from.size(), to_string(from.dims),
         to_string(to.dims));
  if (from.data == to.data || from.size() == 0)
    return;
  if (from.type == dtype::string) {
    std::copy_n(from.as<std::string>(), from.size(), to.as<std::string>());
    return;
  }
  if (is_container(from.type)) {
    std::copy_n(from.as<tensor>(), from.size(), to.as<tensor>());
    return;
  }
  parallel_for(from.bytes(), 4 * copy_grain, [&](int64_t begin, int64_t end) {
    std::memcpy(to.as<char>() + begin, from.as<char>() + begin, static_cast<size_t>(end - begin));
  });
}

void copy_strided(dtype type, const void* from, void* to, std::vector<copy_axis> axes) {
  if (std::any_of(axes.begin(), axes.end(), [](const auto& axis) { return axis.size <= 0; }))
    return;
  axes = simplified(axes);
  if (axes.empty())
    axes.push_back({1, 1, 1});
  visit_movable(type,
                [&]<class T>(type_tag<T>) { copy_typed(static_cast<const T*>(from), static_cast<T*>(to), axes); });
}

} // namespace troupe
