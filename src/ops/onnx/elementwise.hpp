// Loops that the elementwise families share: y[i] = f(x[i]) and y[i] = f(a[i], b[i]) with broadcasting.
//
// Broadcasting is collapsed first: neighbouring axes along which every operand moves alike are merged, so that same
// shapes become one row and a bias becomes rows × channels. What is left has an innermost stride of 0 or 1 for every
// operand, and the inner loops are written for those cases so that they vectorise. An output may be the same bytes as
// an operand of its shape (aliasing::in_place): every element is read before it is written, and single-element operands
// are read first.
#pragma once

#include "base/parallel.hpp"
#include "ops/op.hpp"

#include <cmath>
#include <limits>

namespace troupe {

/// Elements a thread should have before another one pays.
inline constexpr int64_t map_grain = 32 * 1024;

/// What elements of type T are computed with: float for 16-bit floats, else T itself.
template <class T>
using compute_type = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

/// Returns cost with `flops` for each element of the first operand.
op_cost cost_per_element(const call_shapes& call, double flops);

/// y[i] = f(x[i]) for `count` elements; f takes and gives what T and R are computed with.
template <class T, class R, class F>
void map_elements(const T* x, R* y, int64_t count, F f) {
  parallel_for(count, map_grain, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i)
      y[i] = static_cast<R>(f(static_cast<compute_type<T>>(x[i])));
  });
}

/// How K operands walk along one output, axes merged (see the top of this file). Always has an innermost axis.
template <size_t K>
struct broadcast_walk {
  shape dims;                               // collapsed output dims, outermost first
  std::vector<std::array<int64_t, K>> step; // by collapsed axis: strides in elements
  int64_t count = 0;

  int64_t inner() const { return dims.back(); }
  /// Offsets of the operands at the start of row `row`.
  std::array<int64_t, K> offsets(int64_t row) const {
    std::array<int64_t, K> at{};
    for (size_t axis = dims.size() - 1; axis-- > 0; row /= dims[axis])
      for (size_t k = 0; k < K; ++k)
        at[k] += row % dims[axis] * step[axis][k];
    return at;
  }
};

/// Throws `errc::invalid_input` if an operand does not broadcast to `out`.
void check_broadcast(std::span<const int64_t> dims, std::span<const int64_t> out);

/// Collapses the walk of operands with the given dims over `out`; throws `errc::invalid_input` if one does not fit.
template <size_t K>
broadcast_walk<K> collapse(std::span<const int64_t> out, const std::array<std::span<const int64_t>, K>& operands) {
  std::array<shape, K> strides;
  for (size_t k = 0; k < K; ++k) {
    check_broadcast(operands[k], out);
    strides[k] = broadcast_strides(operands[k], out);
  }
  broadcast_walk<K> walk{.count = volume(out)};
  for (size_t axis = 0; axis < out.size(); ++axis) {
    if (out[axis] == 1)
      continue;
    std::array<int64_t, K> step;
    bool merges = !walk.dims.empty();
    for (size_t k = 0; k < K; ++k) {
      step[k] = strides[k][axis];
      merges = merges && walk.step.back()[k] == step[k] * out[axis];
    }
    if (merges) {
      walk.dims.back() *= out[axis];
      walk.step.back() = step;
    } else {
      walk.dims.push_back(out[axis]);
      walk.step.push_back(step);
    }
  }
  if (walk.dims.empty()) {
    walk.dims = {1};
    walk.step.push_back({});
  }
  return walk;
}

/// Calls `row(y offset, operand offsets, length)` over the whole walk, on several threads where it is long.
template <size_t K, class Row>
void for_each_row(const broadcast_walk<K>& walk, Row row) {
  const int64_t inner = walk.inner();
  parallel_for(walk.count, map_grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t index = begin / inner, column = begin - index * inner;
      const int64_t length = std::min(inner - column, end - begin);
      auto at = walk.offsets(index);
      for (size_t k = 0; k < K; ++k)
        at[k] += column * walk.step.back()[k];
      row(begin, at, length);
      begin += length;
    }
  });
}

/// One row of y = f(a, b); a stride is 0 or 1, not both 0 unless the row has one element.
template <class A, class B, class R, class F>
void zip_row(const A* a, int64_t step_a, const B* b, int64_t step_b, R* y, int64_t length, F f) {
  using CA = compute_type<A>;
  using CB = compute_type<B>;
  if (step_a == 1 && step_b == 1) {
#pragma omp simd
    for (int64_t i = 0; i < length; ++i)
      y[i] = static_cast<R>(f(static_cast<CA>(a[i]), static_cast<CB>(b[i])));
  } else if (step_a == 1) {
    const CB right = static_cast<CB>(b[0]);
#pragma omp simd
    for (int64_t i = 0; i < length; ++i)
      y[i] = static_cast<R>(f(static_cast<CA>(a[i]), right));
  } else {
    const CA left = static_cast<CA>(a[0]);
    for (int64_t i = 0; i < length; ++i)
      y[i] = static_cast<R>(f(left, static_cast<CB>(b[i * step_b])));
  }
}

/// y = f(a, b) with broadcasting: element types A and B, results of type R, dims as the views state.
template <class A, class B, class R, class F>
void zip(const const_view& a, const const_view& b, const mutable_view& y, F f) {
  const auto walk = collapse<2>(y.dims, {a.dims, b.dims});
  const auto step = walk.step.back();
  for_each_row(walk, [&](int64_t at, const std::array<int64_t, 2>& from, int64_t length) {
    zip_row(a.as<A>() + from[0], step[0], b.as<B>() + from[1], step[1], y.as<R>() + at, length, f);
  });
}

/// Returns the single element of optional input `i`, `otherwise` where it is absent. Throws `errc::invalid_input` where
/// it has another type than T or not exactly one element.
template <class T>
T single_element(const kernel_context& c, size_t i, T otherwise) {
  if (!c.has_input(i))
    return otherwise;
  if (c.input(i).type != dtype_of<T> || c.input(i).size() != 1)
    fail(errc::invalid_input, "input {} must be one element of type {}", i, to_string(dtype_of<T>));
  return *c.input(i).as<T>();
}

} // namespace troupe
