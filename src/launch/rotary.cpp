// troupe.Rotary and RotaryEmbedding (RoPE): an invocation a pair, or four (shaders/rotary.comp).
#include "launch/rotary.hpp"
#include "launch/launch_rules.hpp"
#include "ops/head_layout.hpp"

namespace troupe {
namespace {

constexpr uint32_t rotary_group = 128;

launch_lists launch_rotary(const gpu_call& call, const rotary_call& how) {
  const auto& [given, batch, interleaved, positions] = how;
  shader::rotary r = given;
  const operand& x = call.inputs[0];
  const auto variant = float_variant(x.type, call.gpu);
  if (!variant || call.gpu.max_group_size < rotary_group ||
      !takes_rotary_operands(x, call.inputs[1], call.inputs[2], positions ? &call.inputs[3] : nullptr))
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

bool takes_rotary_operands(const operand& x, const operand& cosines, const operand& sines, const operand* positions) {
  return cosines.type == x.type && sines.type == x.type &&
         (!positions || (positions->type == dtype::int64 && cosines.dims.at(0) > 0));
}

rotary_call fused_rotary_call(const gpu_call& call) {
  const shape &whole = call.inputs[0].dims, &cosine = call.inputs[1].dims, &sine = call.inputs[2].dims;
  const std::array<int64_t, 4> x = rotary_dims(call.attrs, whole);
  const bool bshd = rotary_is_bshd(call.attrs, whole.size());
  const int64_t table = x[bshd ? 1 : 2] * x[3];
  for (const shape* angle : {&cosine, &sine})
    if (volume(*angle) != (angle->at(0) == 1 ? 1 : x[0]) * table || angle->at(2) != x[3])
      fail(errc::invalid_input, "rotary embedding: {} does not fit {}", to_string(*angle), to_string(whole));
  return {.params = {.pairs = x[3] / 2,
                     .width = x[3],
                     .middle = x[1],
                     .inner = x[2],
                     .bshd = bshd,
                     .table_rows = cosine[0],
                     .cos_batch = cosine[0] == 1 ? 0 : table,
                     .sin_batch = sine[0] == 1 ? 0 : table,
                     .table_row = x[3],
                     .second = x[3] / 2},
          .batch = x[0]};
}

rotary_call rotary_embedding_call(const gpu_call& call) {
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
  return {.params = {.pairs = pairs,
                     .width = width,
                     .middle = flat ? sequence : heads,
                     .inner = flat ? heads : sequence,
                     .bshd = flat,
                     .table_rows = cache[0],
                     .cos_batch = sequence * pairs,
                     .sin_batch = sequence * pairs,
                     .table_row = pairs},
          .batch = x[0],
          .interleaved = call.attrs.integer("interleaved", 0) != 0,
          .positions = positions};
}

extern constinit const launch_rows rotary_rules = {
    {"", "RotaryEmbedding", [](const gpu_call& c) { return launch_rotary(c, rotary_embedding_call(c)); }},
    {"troupe", "Rotary", [](const gpu_call& c) { return launch_rotary(c, fused_rotary_call(c)); }},
};

} // namespace troupe
