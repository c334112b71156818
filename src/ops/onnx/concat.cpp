// Concat and Split along one axis: each part is a block of rows as long as part size × inner elements. And
// troupe.Append, which rewriting makes of a Concat that puts new rows after those of attention's cache,
//
//   Y[b, h] = past[b, h], then new[b, h]
//
// past [B, H, P, D], new [B, H, S, D], or [B, S, H, D] where attribute new_layout is "bshd", Y [B, H, P + S, D]: where
// Y stays on a device and is the next run's past, only new rows need be written (plan/cut/cache_appends.hpp).
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/head_layout.hpp"
#include "ops/infer.hpp"
#include "ops/movement.hpp"
#include "ops/operand_copy.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

void infer_concat_along(infer_context& c, size_t axis) {
  symbolic_shape out = c.dims(0);
  for (size_t i = 1; i < c.input_count(); ++i) {
    const symbolic_shape& part = c.dims(i);
    if (part.size() != out.size() || c.type(i) != c.type(0))
      fail(errc::invalid_model, "Concat of {} {} and {} {}", to_string(c.type(0)), to_string(out), to_string(c.type(i)),
           to_string(part));
    for (size_t d = 0; d < out.size(); ++d) {
      if (d == axis)
        out[d] = out[d] + part[d];
      else if (out[d].is_constant() && part[d].is_constant() && !(out[d] == part[d]))
        fail(errc::invalid_model, "Concat along axis {} of {} and {}", axis, to_string(out), to_string(part));
      else if (!out[d].is_constant())
        out[d] = part[d]; // equal when bound; a number says more than a symbol
    }
  }
  set_moved(c, {std::move(out)}, c.input_count());
}

void infer_concat_1(infer_context& c) {
  infer_concat_along(c, c.axis("axis", 1, c.rank(0)));
}

void infer_concat(infer_context& c) {
  c.attrs().integer("axis"); // required from opset 4 on
  infer_concat_along(c, c.axis("axis", 1, c.rank(0)));
}

void concat_kernel(kernel_context& c) {
  const mutable_view& out = c.output(0);
  const size_t axis = normalize_axis(c.attrs().integer("axis", 1), out.dims.size());
  const int64_t outer = product(out.dims, 0, axis), inner = product(out.dims, axis + 1, out.dims.size());
  int64_t offset = 0;
  for (size_t i = 0; i < c.input_count(); ++i) {
    const const_view& part = c.input(i);
    if (offset + part.dims[axis] > out.dims[axis] || part.size() != outer * part.dims[axis] * inner)
      fail(errc::invalid_input, "input {} of shape {} does not fit Concat's output {}", i, to_string(part.dims),
           to_string(out.dims));
    const int64_t run = part.dims[axis] * inner;
    copy_strided(part.type, part.data, element_at(out.type, out.data, offset * inner),
                 {{outer, run, out.dims[axis] * inner}, {run, 1, 1}});
    offset += part.dims[axis];
  }
}

/// Equal parts; the last is smaller if the axis does not divide (opset 18).
std::vector<dim> equal_parts(const dim& total, size_t count, bool uneven) {
  const dim parts = static_cast<int64_t>(count);
  const dim part = uneven ? ceil_div(total, parts) : floor_div(total, parts);
  if (total.is_constant() && !uneven && !(part * parts == total))
    fail(errc::invalid_model, "a dim of {} cannot be split into {} equal parts", total.constant(), count);
  std::vector<dim> sizes(count, part);
  if (uneven && !(part * parts == total))
    sizes.back() = max(total - part * dim(static_cast<int64_t>(count) - 1), 0);
  if (uneven && total.is_constant() && part.constant() * (static_cast<int64_t>(count) - 1) > total.constant())
    fail(errc::invalid_model, "a dim of {} cannot be split into {} parts", total.constant(), count);
  return sizes;
}

void infer_split(infer_context& c) {
  const symbolic_shape& in = c.dims(0);
  const size_t axis = c.axis("axis", 0, in.size());
  std::vector<dim> sizes;
  if (const auto stated = c.has_input(1) ? std::optional(c.require_known(1)) : std::nullopt) {
    sizes = *stated;
  } else if (c.attrs().has("split")) {
    const auto numbers = c.attrs().integers("split");
    sizes.assign(numbers.begin(), numbers.end());
  } else {
    const int64_t wanted = c.attrs().integer("num_outputs", static_cast<int64_t>(c.output_count()));
    if (wanted != static_cast<int64_t>(c.output_count()))
      fail(errc::invalid_model, "Split has {} outputs, but num_outputs is {}", c.output_count(), wanted);
    sizes = equal_parts(in[axis], c.output_count(), c.attrs().has("num_outputs"));
  }
  if (sizes.size() != c.output_count())
    fail(errc::invalid_model, "Split has {} outputs, but {} sizes", c.output_count(), sizes.size());
  std::vector<symbolic_shape> outputs(sizes.size(), in);
  dim total = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].is_constant() && sizes[i].constant() < 0)
      fail(errc::invalid_model, "Split has a part of negative size {}", sizes[i].constant());
    outputs[i][axis] = sizes[i];
    total = total + sizes[i];
  }
  if (total.is_constant() && in[axis].is_constant() && !(total == in[axis]))
    fail(errc::invalid_model, "the parts of Split sum to {}, but the dim is {}", total.constant(), in[axis].constant());
  set_moved(c, std::move(outputs));
}

/// Sizes of all parts along the axis: outputs without a use have no shape, but count.
std::vector<int64_t> part_sizes(kernel_context& c, size_t axis) {
  if (auto stated = integers_of(c, 1, "split"))
    return *std::move(stated);
  const dim total = c.input(0).dims[axis];
  return constants(equal_parts(total, c.output_count(), c.attrs().has("num_outputs")));
}

} // namespace

std::vector<operand_copy> split_copies(kernel_context& c) {
  const const_view& in = c.input(0);
  const size_t axis = normalize_axis(c.attrs().integer("axis", 0), in.dims.size());
  const int64_t outer = product(in.dims, 0, axis), inner = product(in.dims, axis + 1, in.dims.size());
  const auto sizes = part_sizes(c, axis);
  if (std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != in.dims[axis])
    fail(errc::invalid_input, "the parts of Split do not sum to dim {} of {}", axis, to_string(in.dims));
  int64_t offset = 0;
  std::vector<operand_copy> copies;
  for (size_t i = 0; i < c.output_count(); offset += sizes.at(i++)) {
    if (!c.has_output(i))
      continue;
    const mutable_view& part = c.output(i);
    const int64_t run = sizes.at(i) * inner;
    if (part.size() != outer * run || offset + sizes.at(i) > in.dims[axis])
      fail(errc::invalid_input, "part {} of Split does not fit the input {}", i, to_string(in.dims));
    copies.push_back({.output = i, .from = offset * inner, .axes = {{outer, in.dims[axis] * inner, run}, {run, 1, 1}}});
  }
  return copies;
}

namespace {

void split_kernel(kernel_context& c) {
  run_copies(c, split_copies(c));
}

/// Dims of the new rows in the order batch, heads, positions, width.
template <class Dim>
std::array<Dim, 4> new_rows(const attributes& attrs, std::span<const Dim> dims) {
  const bool bshd = is_bshd(attrs, "new_layout");
  return {dims[0], dims[bshd ? 2 : 1], dims[bshd ? 1 : 2], dims[3]};
}

void infer_append(infer_context& c) {
  if (c.rank(0) != 4 || c.rank(1) != 4 || c.type(0) != c.type(1))
    fail(errc::invalid_model, "a cache of {} {} and new rows of {} {}", to_string(c.type(0)), to_string(c.dims(0)),
         to_string(c.type(1)), to_string(c.dims(1)));
  symbolic_shape out = c.dims(0);
  const auto rows = new_rows<dim>(c.attrs(), c.dims(1));
  for (const size_t i : {0, 1, 3}) {
    if (out[i].is_constant() && rows[i].is_constant() && !(out[i] == rows[i]))
      fail(errc::invalid_model, "a cache of {} and new rows of {}", to_string(out), to_string(c.dims(1)));
    if (!out[i].is_constant())
      out[i] = rows[i]; // equal when bound; a number says more than a symbol
  }
  out[2] = out[2] + rows[2];
  c.set_output(0, c.type(0), std::move(out));
}

void append_kernel(kernel_context& c) {
  run_copies(c, append_copies(c));
}

void concat_axes(call_axes& a) {
  const infer_context& c = a.call();
  const size_t joined = c.axis("axis", 1, c.rank(0));
  for (size_t axis = 0; axis < c.rank(0); ++axis) {
    if (axis == joined)
      continue;
    call_axis& made = a.map({}, axis);
    for (size_t i = 0; i < c.input_count(); ++i)
      a.join(made, {i, axis});
  }
}

void append_axes(call_axes& a) {
  const bool bshd = is_bshd(a.call().attrs(), "new_layout");
  a.map({{0, 0}, {1, 0}}, 0);
  a.map({{0, 1}, {1, bshd ? 2u : 1u}}, 1);
  a.map({{0, 3}, {1, 3}}, 3);
}

constexpr op_def concat_row(int64_t since, void (*infer)(infer_context&)) {
  return op_row("Concat", since, infer, concat_kernel,
                {.inputs = {1, 255},
                 .types = movable_types,
                 .layouts = layout_support::joining,
                 .repeats = repeats_only,
                 .axes = concat_axes,
                 .mixes = "joins along"});
}

constexpr auto concat_rows = std::to_array<op_def>({
    concat_row(1, infer_concat_1),
    concat_row(4, infer_concat),
    op_row("Split", 1, infer_split, split_kernel,
           {.inputs = {1, 2},
            .max_outputs = 255,
            .types = movable_types,
            .host_inputs = 0b10,
            .axes = axes::beside_axis<0>,
            .mixes = "splits"}),
    op_row("Append", 1, infer_append, append_kernel,
           {.domain = "troupe", .inputs = {2, 2}, .appends = true, .axes = append_axes, .mixes = "appends along"}),
});

} // namespace

std::vector<operand_copy> append_copies(kernel_context& c) {
  const std::span<const int64_t> past = c.input(0).dims, fresh = c.input(1).dims, out = c.output(0).dims;
  if (past.size() != 4 || fresh.size() != 4)
    fail(errc::invalid_input, "Append of {} and {}", to_string(past), to_string(fresh));
  const bool bshd = is_bshd(c.attrs(), "new_layout");
  const auto [batch, heads, rows, width] = new_rows<int64_t>(c.attrs(), fresh);
  const int64_t before = past[2], all = before + rows;
  if (!std::ranges::equal(past, shape{batch, heads, before, width}) ||
      !std::ranges::equal(out, shape{batch, heads, all, width}))
    fail(errc::invalid_input, "a cache of {} and new rows of {} do not make {}", to_string(past), to_string(fresh),
         to_string(out));
  return {{.input = 0, .axes = {{batch * heads, before * width, all * width}, {before * width, 1, 1}}},
          {.input = 1,
           .to = before * width,
           .axes = {{batch, heads * rows * width, heads * all * width},
                    {heads, bshd ? width : rows * width, all * width},
                    {rows, bshd ? heads * width : width, width},
                    {width, 1, 1}}}};
}

extern constinit const op_table onnx_concat_ops = concat_rows;

} // namespace troupe
