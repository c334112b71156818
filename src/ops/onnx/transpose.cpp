// Transpose: y[i0, i1, …] = x with axis perm[k] of x as axis k of y. The blocked copy is strided_copy's.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/movement.hpp"
#include "ops/operand_copy.hpp"

namespace troupe {
namespace {

/// The permutation; reversed axes if the attribute is absent.
std::vector<size_t> permutation(const attributes& attrs, size_t rank) {
  std::vector<size_t> perm;
  if (!attrs.has("perm")) {
    for (size_t i = rank; i-- > 0;)
      perm.push_back(i);
    return perm;
  }
  const auto stated = attrs.integers("perm");
  if (stated.size() != rank)
    fail(errc::invalid_model, "perm has {} entries for an input of rank {}", stated.size(), rank);
  return normalize_axes(stated, rank);
}

void infer_transpose(infer_context& c) {
  const symbolic_shape& in = c.dims(0);
  symbolic_shape out;
  for (size_t axis : permutation(c.attrs(), in.size()))
    out.push_back(in[axis]);
  set_moved(c, {std::move(out)});
}

} // namespace

std::vector<operand_copy> transpose_copies(kernel_context& c) {
  const const_view& in = c.input(0);
  const auto perm = permutation(c.attrs(), in.dims.size());
  const shape from = strides_of(in.dims), to = strides_of(c.output(0).dims);
  operand_copy copy;
  for (size_t i = 0; i < perm.size(); ++i)
    copy.axes.push_back({in.dims[perm[i]], from[perm[i]], to[i]});
  return {std::move(copy)};
}

namespace {

void transpose_kernel(kernel_context& c) {
  run_copies(c, transpose_copies(c));
}

std::optional<size_t> repeats_unmoved(const infer_context& c) {
  const auto perm = permutation(c.attrs(), c.rank(0));
  return std::is_sorted(perm.begin(), perm.end()) ? std::optional<size_t>(0) : std::nullopt;
}

void transpose_axes_of(call_axes& a) {
  const auto perm = permutation(a.call().attrs(), a.call().rank(0));
  for (size_t axis = 0; axis < perm.size(); ++axis)
    a.map({{0, perm[axis]}}, axis);
}

constexpr auto transpose_rows = std::to_array<op_def>({
    op_row("Transpose", 1, infer_transpose, transpose_kernel,
           {.types = movable_types, .repeats = repeats_unmoved, .axes = transpose_axes_of}),
});

} // namespace

extern constinit const op_table onnx_transpose_ops = transpose_rows;

} // namespace troupe
