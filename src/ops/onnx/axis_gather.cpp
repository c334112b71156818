#include "ops/onnx/axis_gather.hpp"

#include "base/parallel.hpp"
#include "ops/strided_copy.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Elements a thread should move before another one pays.
constexpr int64_t axis_gather_grain = 16 * 1024;

/// The longest part of a line whose source is as dense as the line itself: one memcpy.
struct dense_part {
  size_t begin = 0, end = 0;
};

dense_part dense_part_of(const std::vector<int64_t>& offsets) {
  dense_part best;
  for (size_t begin = 0, end; begin < offsets.size(); begin = end) {
    end = begin + 1;
    while (offsets[begin] >= 0 && end < offsets.size() && offsets[end] == offsets[end - 1] + 1)
      ++end;
    if (offsets[begin] >= 0 && end - begin > best.end - best.begin)
      best = {begin, end};
  }
  return best;
}

template <class T>
void gather_line(const T* x, T* y, const std::vector<int64_t>& offsets, const dense_part& dense, const T& fill) {
  const auto pick = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      y[i] = offsets[i] < 0 ? fill : x[offsets[i]];
  };
  pick(0, dense.begin);
  if (dense.begin < dense.end)
    copy_run(x + offsets[dense.begin], y + dense.begin, static_cast<int64_t>(dense.end - dense.begin));
  pick(dense.end, offsets.size());
}

template <class T>
void gather_lines(const T* x, T* y, std::span<const std::vector<int64_t>> offsets, const T& fill) {
  const auto outer = offsets.first(offsets.size() - 1);
  const std::vector<int64_t>& last = offsets.back();
  const dense_part dense = dense_part_of(last);
  const auto length = static_cast<int64_t>(last.size());
  int64_t lines = 1;
  for (const auto& table : outer)
    lines *= static_cast<int64_t>(table.size());
  parallel_for(lines, std::max<int64_t>(1, axis_gather_grain / std::max<int64_t>(length, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t line = begin; line < end; ++line) {
                   int64_t from = 0;
                   bool filled = false;
                   auto rest = static_cast<size_t>(line);
                   for (size_t i = outer.size(); i-- > 0; rest /= outer[i].size()) {
                     const int64_t offset = outer[i][rest % outer[i].size()];
                     filled = filled || offset < 0;
                     from += offset;
                   }
                   if (filled)
                     std::fill_n(y + line * length, length, fill);
                   else
                     gather_line(x + from, y + line * length, last, dense, fill);
                 }
               });
}

} // namespace

void gather_axes(dtype type, const void* x, void* y, std::span<const std::vector<int64_t>> offsets, const void* fill) {
  visit_movable(type, [&]<class T>(type_tag<T>) {
    gather_lines(static_cast<const T*>(x), static_cast<T*>(y), offsets, *static_cast<const T*>(fill));
  });
}

} // namespace troupe
