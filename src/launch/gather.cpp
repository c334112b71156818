// GPU launch rules of Gather, GatherElements, GatherND.
//
// Gather's data may be longer than a binding: it is read in slabs, one launch a slab, each writing only the words that
// it has read.
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"
#include "ops/movement.hpp"

#include <algorithm>

namespace troupe {
namespace {

launch_lists gather_launches(const gpu_call& call) {
  const operand &data = call.inputs[0], &indices = call.inputs[1], &out = call.outputs[0];
  const size_t axis = normalize_axis(call.attrs.integer("axis", 0), data.dims.size());
  const int64_t bound = data.dims[axis], run = product(data.dims, axis + 1, data.dims.size());
  check_known_indices(indices, bound);
  const auto bits = element_bits(data.type);
  const auto words = index_words(indices);
  if (!bits || !words || !is_countable(bound, out.size()))
    return {};
  const int64_t per_word = elements_per_word(*bits, {run}), word_bytes = *bits * per_word / 8;
  const auto variant = word_variant(static_cast<int>(*bits * per_word), call.gpu);
  if (!variant)
    return {};
  const int64_t alignment = std::max<int64_t>(call.gpu.binding_alignment, 16);
  const int64_t slab = call.gpu.max_binding_bytes / alignment * alignment;
  launch_builder b(call, "gather");
  for (int64_t first = 0; first < data.bytes(); first += slab) {
    const int64_t bytes = std::min(slab, data.bytes() - first);
    launch& l = b.add("gather." + *variant, flat_groups(out.size() / per_word, 256, call.gpu),
                      {part_of(b.in(0), first, bytes), b.in(1), b.out(0)});
    l.params = words_of(shader::gather{.count = out.size() / per_word,
                                       .picks = indices.size(),
                                       .run = run / per_word,
                                       .bound = bound,
                                       .first = first / word_bytes,
                                       .size = bytes / word_bytes,
                                       .index_words = *words});
    b.next_step();
  }
  return single_list(b);
}

launch_lists gather_elements_launches(const gpu_call& call) {
  const operand &data = call.inputs[0], &indices = call.inputs[1], &out = call.outputs[0];
  const size_t rank = data.dims.size(), axis = normalize_axis(call.attrs.integer("axis", 0), rank);
  check_known_indices(indices, data.dims[axis]);
  for (size_t i = 0; i < rank; ++i)
    if (i != axis && indices.dims[i] > data.dims[i])
      fail(errc::invalid_input, "indices of shape {} reach beyond data of shape {}", to_string(indices.dims),
           to_string(data.dims));
  const auto variant = movement_variant(data.type, call.gpu);
  const auto words = index_words(indices);
  if (!variant || !words || rank > max_copy_axes || !is_countable(data.dims[axis], out.size()))
    return {};
  const shape strides = strides_of(data.dims);
  launch_builder b(call, "gather_elements");
  launch& l =
      b.add("gather_elements." + *variant, flat_groups(out.size(), 256, call.gpu), {b.in(0), b.in(1), b.out(0)});
  shader::gather_elements block{
      .count = out.size(), .rank = rank, .bound = data.dims[axis], .step = strides[axis], .index_words = *words};
  for (size_t i = 0; i < rank; ++i)
    block.axes[rank - 1 - i] = {indices.dims[i], i == axis ? 0 : strides[i]};
  l.params = words_of(block);
  return single_list(b);
}

launch_lists gather_nd_launches(const gpu_call& call) {
  const operand &data = call.inputs[0], &indices = call.inputs[1], &out = call.outputs[0];
  const auto batch = static_cast<size_t>(call.attrs.integer("batch_dims", 0));
  const auto length = static_cast<size_t>(indices.dims.back());
  const size_t rank = data.dims.size();
  if (batch >= indices.dims.size() || batch + length > rank ||
      !std::equal(data.dims.begin(), data.dims.begin() + static_cast<std::ptrdiff_t>(batch), indices.dims.begin()))
    fail(errc::invalid_input, "indices {} do not fit data {}", to_string(indices.dims), to_string(data.dims));
  const auto bits = element_bits(data.type);
  const auto words = index_words(indices);
  if (!bits || !words || length > max_copy_axes)
    return {};
  const int64_t run = product(data.dims, batch + length, rank), per_word = elements_per_word(*bits, {run});
  const auto variant = word_variant(static_cast<int>(*bits * per_word), call.gpu);
  if (!variant)
    return {};
  const int64_t tuples = product(indices.dims, 0, indices.dims.size() - 1);
  const int64_t batches = std::max<int64_t>(product(data.dims, 0, batch), 1);
  const shape strides = strides_of(data.dims);
  launch_builder b(call, "gather_nd");
  launch& l =
      b.add("gather_nd." + *variant, flat_groups(out.size() / per_word, 256, call.gpu), {b.in(0), b.in(1), b.out(0)});
  shader::gather_nd block{.count = out.size() / per_word,
                          .run = run / per_word,
                          .tuple = length,
                          .batch_tuples = tuples / batches,
                          .batch_step = product(data.dims, batch, rank) / per_word,
                          .index_words = *words};
  for (size_t i = 0; i < length; ++i) {
    if (!is_countable(data.dims[batch + i], out.size()))
      return {};
    block.axes[i] = {data.dims[batch + i], strides[batch + i] / per_word};
  }
  l.params = words_of(block);
  return single_list(b);
}

} // namespace

extern constinit const launch_rows gather_rules = {
    {"", "Gather", gather_launches},
    {"", "GatherElements", gather_elements_launches},
    {"", "GatherND", gather_nd_launches},
};

} // namespace troupe
