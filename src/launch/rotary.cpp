// troupe.Rotary and RotaryEmbedding: an invocation a pair, or four (shaders/rotary.comp).
#include "launch/launches.hpp"
#include "launch/parameters.hpp"
#include "ops/head_layout.hpp"

namespace troupe {
namespace {

constexpr uint32_t rotary_group = 128;

/// `r` lacks what follows from the rest: the numbers of invocations.
launch_lists launch_rotary(const gpu_call& call, int64_t batch, bool interleaved, shader::rotary r) {
  const operand& x = call.inputs[0];
  const bool is_float = x.type == dtype::float32 || x.type == dtype::float16;
  const auto variant = is_float ? arithmetic_variant(x.type, call.gpu) : std::nullopt;
  if (!variant || call.inputs[1].type != x.type || call.inputs[2].type != x.type ||
      call.gpu.max_group_size < rotary_group)
    return {};
  const bool positions = call.has_input(3);
  if (positions && (call.inputs[3].type != dtype::int64 || call.inputs[1].dims.at(0) < 1))
    return {};
  const bool vectors = !interleaved && 2 * r.pairs == r.width && r.pairs % 4 == 0;
  const int64_t per_head = vectors ? r.pairs / 4 : r.width - r.pairs, count = batch * r.middle * r.inner * per_head;
  r.per_head = per_head;
  r.count = count;
  launch_builder b(call, "rotary");
  launch& l = b.add("rotary." + *variant, flat_groups(count, rotary_group, call.gpu),
                    {b.in(0), b.in(1), b.in(2), b.in(positions ? 3 : 0), b.out(0)});
  l.constants = {vectors ? 1u : 0u, interleaved ? 1u : 0u, positions ? 1u : 0u};
  l.params = words_of(r);
  return single_list(b);
}

} // namespace

launch_lists fused_rotary_launches(const gpu_call& call) {
  const shape &x = call.inputs[0].dims, &cosine = call.inputs[1].dims, &sine = call.inputs[2].dims;
  const bool behind = heads_behind(call.attrs, "layout");
  const int64_t table = x[behind ? 1 : 2] * x[3];
  for (const shape* angle : {&cosine, &sine})
    if (volume(*angle) != (angle->at(0) == 1 ? 1 : x[0]) * table || angle->at(2) != x[3])
      fail(errc::invalid_input, "rotary embedding: {} does not fit {}", to_string(*angle), to_string(x));
  return launch_rotary(call, x[0], false,
                       {.pairs = x[3] / 2,
                        .width = x[3],
                        .middle = x[1],
                        .inner = x[2],
                        .behind = behind,
                        .table_rows = cosine[0],
                        .cos_batch = cosine[0] == 1 ? 0 : table,
                        .sin_batch = sine[0] == 1 ? 0 : table,
                        .table_row = x[3],
                        .second = x[3] / 2});
}

launch_lists rotary_embedding_launches(const gpu_call& call) {
  const shape &x = call.inputs[0].dims, &cache = call.inputs[1].dims;
  const bool flat = x.size() == 3, positions = call.has_input(3);
  const int64_t heads = flat ? call.attrs.integer("num_heads", 0) : x.at(1), sequence = x.at(flat ? 1 : 2);
  if (heads < 1 || (flat && x[2] % heads != 0))
    fail(errc::invalid_input, "{} does not hold {} heads", to_string(x), heads);
  const int64_t width = flat ? x[2] / heads : x.at(3), rotated = call.attrs.integer("rotary_embedding_dim", 0);
  const int64_t pairs = (rotated == 0 ? width : rotated) / 2;
  const shape table = positions ? shape{cache.at(0), pairs} : shape{x[0], sequence, pairs};
  if (rotated < 0 || rotated > width || rotated % 2 != 0 || (rotated == 0 && width % 2 != 0) || cache != table ||
      call.inputs[2].dims != table || (positions && call.inputs[3].dims != shape{x[0], sequence}))
    fail(errc::invalid_input, "rotary embedding: caches {} do not fit {}", to_string(cache), to_string(x));
  return launch_rotary(call, x[0], call.attrs.integer("interleaved", 0) != 0,
                       {.pairs = pairs,
                        .width = width,
                        .middle = flat ? sequence : heads,
                        .inner = flat ? heads : sequence,
                        .behind = flat,
                        .table_rows = cache[0],
                        .cos_batch = sequence * pairs,
                        .sin_batch = sequence * pairs,
                        .table_row = pairs});
}

} // namespace troupe
