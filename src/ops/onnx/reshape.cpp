// Other shapes for the same bytes: Reshape, Flatten, Squeeze, Unsqueeze. All are views; the kernels copy if a device
// could not alias, and check that the volumes agree (symbolic dims make that a question of the run).
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/movement.hpp"
#include "ops/strided_copy.hpp"

#include <algorithm>

namespace troupe {
namespace {

void copy_view(kernel_context& c) {
  copy_all(c.input(0), c.output(0));
}

/// The dim written -1: what is left of `in`'s volume after the other dims of `out`. Equal dims cancel first, so that
/// sums such as past + seq need no polynomial division.
dim remaining(symbolic_shape in, std::span<const dim> out, size_t inferred) {
  symbolic_shape rest;
  for (size_t i = 0; i < out.size(); ++i) {
    if (i == inferred)
      continue;
    if (const auto same = std::find(in.begin(), in.end(), out[i]); same != in.end())
      in.erase(same);
    else
      rest.push_back(out[i]);
  }
  const dim total = volume(in), others = volume(rest);
  if (others.is(0))
    fail(errc::invalid_model, "the dim written -1 cannot be found: another dim is 0");
  dim left = floor_div(total, others);
  if (total.is_constant() && others.is_constant() && !(left * others == total))
    fail(errc::invalid_model, "{} elements cannot be divided by {}", total.constant(), others.constant());
  return left;
}

/// Writes output 0 for the requested dims, where 0 copies a dim (unless `allowzero`) and one -1 takes what is left.
void infer_target(infer_context& c, const std::vector<dim>& target, bool allowzero) {
  const symbolic_shape& in = c.dims(0);
  symbolic_shape out;
  std::optional<size_t> inferred;
  for (size_t i = 0; i < target.size(); ++i) {
    const dim& wanted = target[i];
    if (wanted.is(-1)) {
      if (inferred)
        fail(errc::invalid_model, "shape {} has more than one -1", to_string(target));
      inferred = i;
    } else if (wanted.is_constant() && wanted.constant() < 0) {
      fail(errc::invalid_model, "shape {} has a negative dim", to_string(target));
    }
    const bool copies = wanted.is(0) && !allowzero;
    if (copies && i >= in.size())
      fail(errc::invalid_model, "shape {} copies dim {} of an input of rank {}", to_string(target), i, in.size());
    out.push_back(copies ? in[i] : wanted);
  }
  if (inferred)
    out[*inferred] = remaining(in, out, *inferred);
  if (is_constant(in) && is_constant(out) && volume(constants(in)) != volume(constants(out)))
    fail(errc::invalid_model, "shape {} cannot become {}", to_string(in), to_string(out));
  set_moved(c, {std::move(out)});
}

void infer_reshape_1(infer_context& c) {
  const auto wanted = c.attrs().integers("shape", {});
  infer_target(c, {wanted.begin(), wanted.end()}, false);
}

void infer_reshape(infer_context& c) {
  infer_target(c, c.require_known(1), c.attrs().integer("allowzero", 0) != 0);
}

void infer_flatten(infer_context& c) {
  const symbolic_shape& in = c.dims(0);
  const auto rank = static_cast<int64_t>(in.size());
  const int64_t axis = c.attrs().integer("axis", 1);
  if (axis < -rank || axis > rank)
    fail(errc::invalid_model, "axis {} is out of range for rank {}", axis, rank);
  const std::span<const dim> all(in);
  const auto split = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  set_moved(c, {{volume(all.first(split)), volume(all.subspan(split))}});
}

void infer_squeeze(infer_context& c) {
  const symbolic_shape& in = c.dims(0);
  std::vector<bool> drop(in.size());
  // An empty list is as none: ONNX does not say, ONNX Runtime does so.
  if (const auto axes = integers_of(c, 1, "axes"); axes && !axes->empty()) {
    for (size_t axis : normalize_axes(*axes, in.size())) {
      if (in[axis].is_constant() && !in[axis].is(1))
        fail(errc::invalid_model, "axis {} of size {} cannot be squeezed", axis, in[axis].constant());
      drop[axis] = true;
    }
  } else {
    // Without axes the rank of the output depends on which dims are 1.
    if (!is_constant(in))
      fail(errc::unsupported, "Squeeze without axes needs known dims, but the input is {}", to_string(in));
    for (size_t i = 0; i < in.size(); ++i)
      drop[i] = in[i].is(1);
  }
  symbolic_shape out;
  for (size_t i = 0; i < in.size(); ++i)
    if (!drop[i])
      out.push_back(in[i]);
  set_moved(c, {std::move(out)});
}

void infer_unsqueeze(infer_context& c) {
  const auto axes = integers_of(c, 1, "axes");
  if (!axes)
    fail(errc::invalid_model, "Unsqueeze has no axes");
  const symbolic_shape& in = c.dims(0);
  std::vector<bool> added(in.size() + axes->size());
  for (size_t axis : normalize_axes(*axes, added.size()))
    added[axis] = true;
  symbolic_shape out;
  size_t next = 0;
  for (bool is_new : added)
    out.push_back(is_new ? dim(1) : in[next++]);
  set_moved(c, {std::move(out)});
}

/// Without axes all dims of 1 go: of a part of known dims perhaps others than of the whole.
void squeeze_axes(call_axes& a) {
  if (is_constant(a.call().dims(0)) && !integers_of(a.call(), 1, "axes"))
    a.refuse("removes all dims of 1");
  axes::view(a);
}

/// Input 1, if there may be one, is the shape or the axes.
constexpr op_def view_row(std::string_view name, int64_t since, void (*infer)(infer_context&),
                          operand_range inputs = {1, 1}, void (*axes)(call_axes&) = axes::view) {
  return op_row(name, since, infer, copy_view,
                {.inputs = inputs,
                 .types = types::any,
                 .host_inputs = inputs.max > 1 ? 0b10u : 0u,
                 .alias = aliasing::view,
                 .axes = axes,
                 .mixes = "folds"});
}

constexpr auto reshape_rows = std::to_array<op_def>({
    view_row("Reshape", 1, infer_reshape_1),
    view_row("Reshape", 5, infer_reshape, {2, 2}),
    view_row("Flatten", 1, infer_flatten),
    view_row("Squeeze", 1, infer_squeeze, {1, 1}, squeeze_axes),
    view_row("Squeeze", 13, infer_squeeze, {1, 2}, squeeze_axes),
    view_row("Unsqueeze", 1, infer_unsqueeze),
    view_row("Unsqueeze", 13, infer_unsqueeze, {2, 2}),
});

} // namespace

extern constinit const op_table onnx_reshape_ops = reshape_rows;

} // namespace troupe
