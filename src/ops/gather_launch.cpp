// GPU launch rules of Gather.
//
// Data longer than a binding may be is read in slabs: one launch a slab, each writing only the words that it has read.
#include "ops/launches.hpp"
#include "ops/movement.hpp"
#include "ops/movement_launch.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Whether the shaders can count indices of an axis.
bool is_countable(int64_t bound) {
  return bound <= INT32_MAX;
}

} // namespace

launch_lists gather_launches(const gpu_call& call) {
  const operand &data = call.inputs[0], &indices = call.inputs[1], &out = call.outputs[0];
  const size_t axis = normalize_axis(call.attrs.integer("axis", 0), data.dims.size());
  const int64_t bound = data.dims[axis], run = product(data.dims, axis + 1, data.dims.size());
  check_known_indices(indices, bound);
  const auto bits = element_bits(data.type);
  const auto words = index_words(indices);
  if (!bits || !words || !is_countable(bound) || (bound == 0 && out.size() > 0))
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
    for (int64_t word : {out.size() / per_word, indices.size(), run / per_word, bound, first / word_bytes,
                         bytes / word_bytes, static_cast<int64_t>(*words)})
      l.params.push_back(static_cast<uint32_t>(word));
    b.next_step();
  }
  auto list = b.finish();
  return list ? launch_lists{std::move(*list)} : launch_lists{};
}

} // namespace troupe
