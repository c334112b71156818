// Sequences: lists of tensors of one element type, made, changed, read, cut from tensors and joined to tensors.
//
// A sequence is a tensor of one dim whose elements are tensors (troupe/tensor.hpp), in the memory of the session's
// process alone. Its length is a dim like any other, so SequenceLength needs no run where it is known. What is known of
// its elements' shapes is said beside it (`element_shapes`); where that is only a rank, the dims of what is taken out
// depend on data. Elements are handles: changing a sequence, or taking something out, copies no bytes of theirs. What
// is put in is copied, because devices use its memory again.
#include "base/limits.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/movement.hpp"
#include "ops/strided_copy.hpp"
#include "tensor/elements.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

std::span<const tensor> elements_of(const const_view& sequence) {
  return {sequence.as<tensor>(), static_cast<size_t>(sequence.size())};
}

size_t checked_length(int64_t count) {
  if (count > limits::max_sequence_length)
    fail(errc::unsupported, "a sequence of {} tensors; at most {} are supported", count, limits::max_sequence_length);
  return static_cast<size_t>(count);
}

/// Returns the elements of output 0, to fill.
std::span<tensor> new_elements(kernel_context& c, int64_t count) {
  const size_t length = checked_length(count);
  return {output_of(c, 0, {count}).as<tensor>(), length};
}

tensor copy_of(const const_view& value) {
  tensor copy(value.type, {value.dims.begin(), value.dims.end()});
  copy_all(value, copy.mutable_ref());
  return copy;
}

/// Returns the position that input `i` names, counted from the front, or `otherwise` if it is absent. A sequence of
/// `count` has positions −count ≤ p < `end`.
size_t position_of(const kernel_context& c, size_t i, int64_t count, int64_t end, int64_t otherwise) {
  int64_t p = otherwise;
  if (c.has_input(i)) {
    if (c.input(i).size() != 1)
      fail(errc::invalid_input, "the position has shape {}; it must be one element", to_string(c.input(i).dims));
    p = to_int64(c.input(i)).front();
  }
  if (p < -count || p >= end)
    fail(errc::invalid_input, "position {} is out of range for a sequence of {}", p, count);
  return static_cast<size_t>(p < 0 ? p + count : p);
}

void check_position(const infer_context& c, size_t i) {
  if (c.has_input(i) && c.type(i) != dtype::int64 && c.type(i) != dtype::int32)
    fail(errc::invalid_model, "the position is {}; it must be int32 or int64", to_string(c.type(i)));
}

// -- SequenceEmpty, SequenceConstruct

void infer_sequence_empty(infer_context& c) {
  const dtype element = dtype_from_onnx(static_cast<int>(c.attrs().integer("dtype", 1)));
  c.set_output(0, sequence_of(element), {0}, {.dims = std::nullopt, .empty = true});
}

void infer_sequence_construct(infer_context& c) {
  element_shapes elements{.dims = std::nullopt, .empty = true};
  for (size_t i = 0; i < c.input_count(); ++i)
    elements = join(elements, shapes_of_elements(c.dims(i)));
  c.set_output(0, sequence_of(common_type(c)), {static_cast<int64_t>(c.input_count())}, std::move(elements));
}

/// Of SequenceEmpty too.
void sequence_construct_kernel(kernel_context& c) {
  const std::span<tensor> made = new_elements(c, static_cast<int64_t>(c.input_count()));
  for (size_t i = 0; i < made.size(); ++i)
    made[i] = copy_of(c.input(i));
}

// -- SequenceAt, SequenceInsert, SequenceErase, SequenceLength

void infer_sequence_at(infer_context& c) {
  check_position(c, 1);
  c.set_element(0, element_of(c.type(0)), c.input(0).elements);
}

void sequence_at_kernel(kernel_context& c) {
  const std::span<const tensor> from = elements_of(c.input(0));
  const auto count = static_cast<int64_t>(from.size());
  c.give(0, from[position_of(c, 1, count, count, 0)]);
}

void infer_sequence_insert(infer_context& c) {
  if (c.type(1) != element_of(c.type(0)))
    fail(errc::invalid_model, "{} cannot go into a {}", to_string(c.type(1)), to_string(c.type(0)));
  check_position(c, 2);
  c.set_output(0, c.type(0), {c.dims(0)[0] + 1}, join(c.input(0).elements, shapes_of_elements(c.dims(1))));
}

void sequence_insert_kernel(kernel_context& c) {
  const std::span<const tensor> from = elements_of(c.input(0));
  const auto count = static_cast<int64_t>(from.size());
  const auto at = static_cast<ptrdiff_t>(position_of(c, 2, count, count + 1, count));
  const std::span<tensor> made = new_elements(c, count + 1);
  const auto gap = std::copy(from.begin(), from.begin() + at, made.begin());
  *gap = copy_of(c.input(1));
  std::copy(from.begin() + at, from.end(), gap + 1);
}

void infer_sequence_erase(infer_context& c) {
  check_position(c, 1);
  const dim& length = c.dims(0)[0];
  if (length.is(0))
    fail(errc::invalid_model, "the sequence is empty");
  c.set_output(0, c.type(0), {length - 1}, c.input(0).elements);
}

void sequence_erase_kernel(kernel_context& c) {
  const std::span<const tensor> from = elements_of(c.input(0));
  const auto count = static_cast<int64_t>(from.size());
  const auto at = static_cast<ptrdiff_t>(position_of(c, 1, count, count, count - 1));
  const auto gap = std::copy(from.begin(), from.begin() + at, new_elements(c, count - 1).begin());
  std::copy(from.begin() + at + 1, from.end(), gap);
}

void infer_sequence_length(infer_context& c) {
  c.set_output(0, dtype::int64, {});
  c.set_known(0, {c.dims(0)[0]});
}

void sequence_length_kernel(kernel_context& c) {
  *c.output(0).as<int64_t>() = c.input(0).size();
}

// -- SplitToSequence: pieces along an axis, of one size (the last may be smaller) or of listed sizes. Without sizes
// pieces have one element along the axis, which attribute `keepdims` keeps or drops.

bool keeps_axis(const attributes& attrs, bool has_sizes) {
  return has_sizes || attrs.integer("keepdims", 1) != 0;
}

/// Length of the sequence, and size of its pieces along the axis: −1 where they differ or only the run tells.
std::pair<dim, int64_t> infer_pieces(const infer_context& c, const dim& total) {
  if (!c.has_input(1))
    return {total, 1};
  if (c.rank(1) > 1)
    fail(errc::invalid_model, "sizes of shape {}; they must be one number or a list", to_string(c.dims(1)));
  const auto known = c.known(1);
  const bool constant = known && !known->empty() && is_constant(*known);
  if (c.rank(1) == 1) {
    const bool equal =
        constant && std::all_of(known->begin(), known->end(), [&](const dim& d) { return d == known->front(); });
    return {c.dims(1)[0], equal ? known->front().constant() : -1};
  }
  if (!constant)
    return {c.data_dependent(0, 0), -1};
  const int64_t size = known->front().constant();
  if (size < 1)
    fail(errc::invalid_model, "pieces of {} elements", size);
  const bool divides = total.is_constant() && total.constant() % size == 0;
  return {ceil_div(total, size), divides ? size : -1};
}

void infer_split_to_sequence(infer_context& c) {
  const symbolic_shape& in = c.dims(0);
  const size_t axis = c.axis("axis", 0, in.size());
  const auto [length, size] = infer_pieces(c, in[axis]);
  element_shapes pieces = shapes_of_elements(in);
  const auto at = pieces.dims->begin() + static_cast<ptrdiff_t>(axis);
  *at = size;
  if (!keeps_axis(c.attrs(), c.has_input(1)))
    pieces.dims->erase(at);
  c.set_output(0, sequence_of(c.type(0)), {length}, std::move(pieces));
}

/// Returns the sizes of the pieces of a dim of `total` elements.
std::vector<int64_t> piece_sizes(const kernel_context& c, int64_t total) {
  std::vector<int64_t> sizes = c.has_input(1) ? to_int64(c.input(1)) : std::vector<int64_t>{1};
  if (c.has_input(1) && c.input(1).dims.size() == 1) {
    int64_t left = total;
    for (int64_t size : sizes)
      left = size < 0 || size > left ? -1 : left - size;
    if (left != 0)
      fail(errc::invalid_input, "the sizes {} do not add up to a dim of {}", to_string(std::span<const int64_t>(sizes)),
           total);
    return sizes;
  }
  const int64_t size = sizes.front();
  if (size < 1)
    fail(errc::invalid_input, "pieces of {} elements", size);
  const int64_t count = total / size + (total % size != 0);
  sizes.assign(checked_length(count), size);
  if (total % size != 0)
    sizes.back() = total % size;
  return sizes;
}

void split_to_sequence_kernel(kernel_context& c) {
  const const_view& in = c.input(0);
  const size_t axis = normalize_axis(c.attrs().integer("axis", 0), in.dims.size());
  const int64_t outer = product(in.dims, 0, axis), inner = product(in.dims, axis + 1, in.dims.size());
  const std::vector<int64_t> sizes = piece_sizes(c, in.dims[axis]);
  const std::span<tensor> made = new_elements(c, static_cast<int64_t>(sizes.size()));
  int64_t offset = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    shape dims(in.dims.begin(), in.dims.end());
    dims[axis] = sizes[i];
    if (!keeps_axis(c.attrs(), c.has_input(1)))
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
    made[i] = tensor(in.type, std::move(dims));
    const int64_t run = sizes[i] * inner;
    copy_strided(in.type, element_at(in.type, in.data, offset), made[i].mutable_data(),
                 {{outer, in.dims[axis] * inner, run}, {run, 1, 1}});
    offset += run;
  }
}

// -- ConcatFromSequence: Concat of the elements, or with `new_axis` a stack of them.

void infer_concat_from_sequence(infer_context& c) {
  const dtype type = element_of(c.type(0));
  const element_shapes& elements = c.input(0).elements;
  const bool stacks = c.attrs().integer("new_axis", 0) != 0;
  const int64_t stated_axis = c.attrs().integer("axis");
  if (!(movable_types & set_of(type)))
    fail(errc::unsupported, "element type {} is not supported", to_string(type));
  if (!elements.dims)
    return c.set_output_of_any_rank(0, type);
  const size_t axis = normalize_axis(stated_axis, elements.dims->size() + stacks);
  const dim& length = c.dims(0)[0];
  symbolic_shape dims = to_symbolic(*elements.dims);
  if (stacks)
    dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), length);
  else
    dims[axis] = length.is_constant() && !dims[axis].is(-1) ? length * dims[axis] : dim(-1);
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d].is(-1))
      dims[d] = c.data_dependent(0, d);
  c.set_output(0, type, std::move(dims));
}

/// Returns the dims of the elements joined along `axis`.
shape joined_dims(std::span<const tensor> parts, size_t axis, bool stacks) {
  shape joined = parts.front().dims();
  for (const tensor& part : parts) {
    shape dims = part.dims();
    if (!stacks && dims.size() == joined.size())
      dims[axis] = joined[axis];
    if (dims != joined)
      fail(errc::invalid_input, "elements of shapes {} and {} cannot be joined along axis {}", to_string(part.dims()),
           to_string(parts.front().dims()), axis);
  }
  if (stacks)
    joined.insert(joined.begin() + static_cast<ptrdiff_t>(axis), static_cast<int64_t>(parts.size()));
  else
    joined[axis] = std::accumulate(parts.begin(), parts.end(), int64_t{0},
                                   [&](int64_t sum, const tensor& part) { return sum + part.dims()[axis]; });
  return joined;
}

void concat_from_sequence_kernel(kernel_context& c) {
  const std::span<const tensor> parts = elements_of(c.input(0));
  if (parts.empty())
    fail(errc::invalid_input, "the sequence is empty: there is nothing to join");
  const bool stacks = c.attrs().integer("new_axis", 0) != 0;
  const size_t axis = normalize_axis(c.attrs().integer("axis"), parts.front().dims().size() + stacks);
  const mutable_view out = output_of(c, 0, joined_dims(parts, axis, stacks));
  const int64_t outer = product(out.dims, 0, axis), line = product(out.dims, axis, out.dims.size());
  int64_t offset = 0;
  for (const tensor& part : parts) {
    const int64_t run = product(part.dims(), axis, part.dims().size());
    copy_strided(out.type, part.data(), element_at(out.type, out.data, offset), {{outer, run, line}, {run, 1, 1}});
    offset += run;
  }
}

/// Sequences are never known before a run, and hold what they were given: they stay as they are when a model becomes
/// float16.
constexpr op_def sequence_row(std::string_view name, void (*infer)(infer_context&), void (*reference)(kernel_context&),
                              operand_range inputs, dtype_set types = types::sequence) {
  return op_row(
      name, 11, infer, reference,
      {.inputs = inputs, .types = types, .hides_elements = true, .needs_float32 = true, .mixes = in_containers});
}

constexpr auto sequence_rows = std::to_array<op_def>({
    sequence_row("SequenceEmpty", infer_sequence_empty, sequence_construct_kernel, {0, 0}, types::any),
    sequence_row("SequenceConstruct", infer_sequence_construct, sequence_construct_kernel, {1, 255}, types::any),
    sequence_row("SequenceAt", infer_sequence_at, sequence_at_kernel, {2, 2}),
    sequence_row("SequenceInsert", infer_sequence_insert, sequence_insert_kernel, {2, 3}),
    sequence_row("SequenceErase", infer_sequence_erase, sequence_erase_kernel, {1, 2}),
    sequence_row("SequenceLength", infer_sequence_length, sequence_length_kernel, {1, 1}),
    sequence_row("SplitToSequence", infer_split_to_sequence, split_to_sequence_kernel, {1, 2}, movable_types),
    sequence_row("ConcatFromSequence", infer_concat_from_sequence, concat_from_sequence_kernel, {1, 1}),
});

} // namespace

extern constinit const op_table onnx_sequence_ops = sequence_rows;

} // namespace troupe
