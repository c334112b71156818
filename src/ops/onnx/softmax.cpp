// Softmax, LogSoftmax and Hardmax along one axis.
//
// From opset 13 on the axis (default −1) is normalised by itself; before, the operand counts as a matrix whose rows are
// the axes before `axis` (default 1) and whose columns are all the others. softmax(x) = e^(x − max) / Σ e^(x − max).
#include "ops/onnx/softmax.hpp"

#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <cmath>

namespace troupe {
namespace {

template <bool Flatten>
void infer_softmax(infer_context& c) {
  const auto rank = static_cast<int64_t>(c.rank(0));
  const int64_t axis = c.attrs().integer("axis", Flatten ? 1 : -1);
  if (rank > 0 && !(Flatten && axis == rank))
    normalize_axis(axis, c.rank(0));
  infer_same(c);
}

/// Calls `row(x, y, size, stride)` for every vector that is normalised.
template <bool Flatten, class F>
void for_rows(kernel_context& c, F&& row) {
  const row_extent e = softmax_extent(c.attrs(), c.input(0).dims, Flatten);
  visit_compute(c.input(0).type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(c.input(0));
    write_as<C> out(c.output(0));
    const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, e.size));
    parallel_for(e.size ? e.rows() : 0, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i / e.inner * e.size * e.inner + i % e.inner;
        row(in.data() + at, out.data() + at, e.size, e.inner);
      }
    });
    out.commit();
  });
}

template <class C>
C largest(const C* x, int64_t size, int64_t stride) {
  C result = x[0];
  for (int64_t i = 1; i < size; ++i)
    result = std::max(result, x[i * stride]);
  return result;
}

template <bool Flatten>
void softmax(kernel_context& c) {
  for_rows<Flatten>(c, []<class C>(const C* x, C* y, int64_t size, int64_t stride) {
    const C top = largest(x, size, stride);
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) {
      y[i * stride] = std::exp(x[i * stride] - top);
      sum += y[i * stride];
    }
    const auto factor = static_cast<C>(1 / sum);
    for (int64_t i = 0; i < size; ++i)
      y[i * stride] *= factor;
  });
}

template <bool Flatten>
void log_softmax(kernel_context& c) {
  for_rows<Flatten>(c, []<class C>(const C* x, C* y, int64_t size, int64_t stride) {
    const C top = largest(x, size, stride);
    double sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sum += std::exp(x[i * stride] - top);
    const auto shift = static_cast<C>(std::log(sum));
    for (int64_t i = 0; i < size; ++i)
      y[i * stride] = x[i * stride] - top - shift;
  });
}

/// 1 at the first largest element, else 0.
template <bool Flatten>
void hardmax(kernel_context& c) {
  for_rows<Flatten>(c, []<class C>(const C* x, C* y, int64_t size, int64_t stride) {
    int64_t best = 0;
    for (int64_t i = 1; i < size; ++i)
      if (x[i * stride] > x[best * stride])
        best = i;
    for (int64_t i = 0; i < size; ++i)
      y[i * stride] = i == best ? C(1) : C(0);
  });
}

/// About five operations an element (maximum, difference, exponential, sum, product).
constexpr auto softmax_cost = cost_per_input<5>;

/// The vectors are along `axis`, or all dims from there on.
template <bool Flatten>
void softmax_axes(call_axes& a) {
  const size_t rank = a.call().rank(0);
  const int64_t axis = a.call().attrs().integer("axis", Flatten ? 1 : -1);
  const size_t first = axis == static_cast<int64_t>(rank) ? rank : normalize_axis(axis, rank);
  a.keep(first, Flatten ? rank : first + 1);
}

template <softmax_kind Kind, bool Flatten>
constexpr op_def softmax_row(std::string_view name, int64_t since, void (*reference)(kernel_context&)) {
  return op_row(name, since, infer_softmax<Flatten>, reference,
                {.types = types::floats,
                 .alias = aliasing::in_place,
                 .cost = softmax_cost,
                 .axes = softmax_axes<Flatten>,
                 .mixes = "normalises over"});
}

constexpr auto softmax_rows = std::to_array<op_def>({
    softmax_row<softmax_kind::softmax, true>("Softmax", 1, softmax<true>),
    softmax_row<softmax_kind::softmax, false>("Softmax", 13, softmax<false>),
    softmax_row<softmax_kind::log_softmax, true>("LogSoftmax", 1, log_softmax<true>),
    softmax_row<softmax_kind::log_softmax, false>("LogSoftmax", 13, log_softmax<false>),
    softmax_row<softmax_kind::hardmax, true>("Hardmax", 1, hardmax<true>),
    softmax_row<softmax_kind::hardmax, false>("Hardmax", 13, hardmax<false>),
});

} // namespace

row_extent softmax_extent(const attributes& attrs, std::span<const int64_t> dims, bool flatten) {
  if (dims.empty())
    return {};
  const int64_t axis = attrs.integer("axis", flatten ? 1 : -1);
  // The matrix form may also split after the last axis: then every row is a single element.
  const bool behind = flatten && axis == static_cast<int64_t>(dims.size());
  const size_t at = behind ? dims.size() : normalize_axis(axis, dims.size());
  if (flatten)
    return {volume(dims.first(at)), volume(dims.subspan(at)), 1};
  return {volume(dims.first(at)), dims[at], volume(dims.subspan(at + 1))};
}

extern constinit const op_table onnx_softmax_ops = softmax_rows;

} // namespace troupe
