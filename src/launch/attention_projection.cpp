// GPU launches of troupe.AttentionProjection: one kernel for a decode step (shaders/attention_projection.comp), else
// attention and the product, one after the other.
#include "base/round_up.hpp"
#include "launch/attention.hpp"
#include "launch/launch_rules.hpp"
#include "launch/part_launches.hpp"
#include "launch/product.hpp"
#include "ops/activation.hpp"
#include "ops/composed/fused_attention.hpp"
#include "ops/head_layout.hpp"

#include <algorithm>

namespace troupe {
namespace {

using attention_projection::bias, attention_projection::residual, attention_projection::weights;

/// How the kernel's work is dealt out: a group has some of the heads, and `team_columns` columns for each team of
/// `team` invocations.
struct projection_group {
  lane_group heads;
  uint32_t team, team_columns;
  int64_t parts, columns; // of all heads; of a group

  int64_t groups(int64_t all_columns) const { return parts * ceil_div(all_columns, columns); }
};

/// Returns the largest power of two that divides `n`.
int64_t even_part(int64_t n) {
  return n & -n;
}

/// Returns the group to use, of `threads` threads; nullopt if the kernel does not suit heads or device. Two heads a
/// group, and as many columns as leave each multiprocessor one group: on an H200 a step of llama_1b takes 0.911 ms
/// then, 0.915 with one head, 0.934 with four, 0.985 with half of the columns.
std::optional<projection_group> choose_group(const attention_call& c, int64_t columns, int64_t vector,
                                             const gpu_features& gpu, uint32_t threads) {
  constexpr int64_t most_vectors = 4, most_weights = 8, most_rows = 2; // registers of an invocation
  const int64_t vectors = std::max(c.width, c.value_width) / vector, lanes = lanes_of_key(vectors, most_vectors, gpu);
  if (!gpu.subgroup_shuffle || lanes == 0)
    return std::nullopt;
  const int64_t words = ceil_div(vectors, lanes) * (c.past > 0 && c.past_wide ? 2 : 1);
  const int64_t ahead = std::min(ceil_div(c.keys * lanes, threads), std::max<int64_t>(1, most_vectors / words));
  projection_group g{.heads = {.threads = threads,
                               .lanes = word(lanes),
                               .ahead = word(ahead),
                               .rows = word(std::min(even_part(c.heads / c.kv_heads), most_rows)),
                               .key_vectors = word(c.width / vector),
                               .value_vectors = word(c.value_width / vector)}};
  const int64_t slice = int64_t{g.heads.rows} * g.heads.value_vectors;
  g.team = word(std::min<int64_t>(even_part(slice), gpu.subgroup_size));
  g.parts = c.heads / g.heads.rows;
  const int64_t blocks = std::max<int64_t>(1, gpu.units / g.parts), teams = threads / g.team;
  g.team_columns = word(
      std::clamp<int64_t>(ceil_div(columns, blocks * teams), 1, std::max<int64_t>(1, most_weights / (slice / g.team))));
  g.columns = teams * g.team_columns;
  return g.heads.fits(gpu, c.value_width, slice * vector) ? std::optional(g) : std::nullopt;
}

/// The largest group that the device can have, if the kernel computes what the call asks for.
std::optional<projection_group> group_of(const gpu_call& call, const attention_call& c, int64_t vector) {
  const attributes product = attributes_of_part(call.attrs, attention_projection::product);
  const int64_t depth = c.heads * c.value_width, n = call.outputs[0].dims.back();
  const dtype type = call.inputs[0].type;
  if (c.batch != 1 || c.queries != 1 || c.heads < 1 || !has_few_queries(call, c, vector) ||
      parse_activation(product).code != scalar_code::same || product.real("alpha", 1) != 1 || n < 1 ||
      !has_type(call, weights, type, depth * n) || !has_type(call, present(call, bias), type, n) ||
      !has_type(call, present(call, residual), type, n))
    return std::nullopt;
  for (const uint32_t threads : {512, 256, 128})
    if (auto g = choose_group(c, n, vector, call.gpu, threads))
      return g;
  return std::nullopt;
}

std::optional<launch_list> list_for(const gpu_call& call, const attention_call& c, const projection_group& g,
                                    int64_t vector) {
  const int64_t depth = c.heads * c.value_width, n = call.outputs[0].dims.back();
  launch_builder b(call, "attention.projection");
  const attributes product = attributes_of_part(call.attrs, attention_projection::product);
  const bool transposed = product.integer("transB", 0) != 0;
  const right_operand matrix = bind_right(
      b, call,
      {.m = 1, .n = n, .k = depth, .b = weights, .b_line = transposed ? depth : 1, .b_depth = transposed ? 1 : n});
  if (matrix.p.b_depth != 1 || matrix.p.b_line % packed_column_padding != 0)
    return std::nullopt;
  const int64_t blocks = ceil_div(n, g.columns);
  auto groups = flat_groups(blocks, 1, call.gpu);
  groups[2] = word(g.parts);
  const auto input = [&](size_t i, size_t otherwise) { return b.in(call.has_input(i) ? i : otherwise); };
  launch& l = b.add("attention_projection." + *float_variant(call.inputs[0].type, call.gpu), groups,
                    {b.in(0), b.in(1), b.in(2), input(3, 0), b.out(0), input(past_key_input, 1),
                     input(past_value_input, 2), written(b.scratch(g.parts * n * 4)), b.counters(blocks),
                     matrix.binding, input(bias, 0), input(residual, 0)});
  const uint32_t flags = few_queries_flags(call, c) | (c.keys <= g.heads.block() ? shader::attention_one_block : 0);
  const uint32_t ends = (call.has_input(bias) ? shader::attention_projection_bias : 0) |
                        (call.has_input(residual) ? shader::attention_projection_residual : 0);
  l.constants = g.heads.constants(call.gpu);
  l.constants.insert(l.constants.end(),
                     {flags, g.team, g.team_columns, word(g.parts), word(n), word(matrix.p.b_line / vector), ends});
  l.params = few_queries_parameters(call, c, c.keys);
  l.fixed_words = fixed_words_of(c);
  l.fixed_groups = l.fixed_words > 0;
  return b.finish();
}

/// Whether the kernel is faster than attention and the product apart: if all its groups run at once, lanes that read a
/// column read neighbouring vectors of it, and not many keys are read again. On an H200 a step takes less up to some
/// 350 keys of 512 bytes, 64 elements of float32 and as many of a value, and 5 % more at 1,000 (llama_1b).
bool pays(const gpu_call& call, const attention_call& c, const projection_group& g) {
  constexpr int64_t many_bytes = 192 << 10;
  constexpr uint32_t neighbours = 4;
  const int64_t element = bytes_of(c.past > 0 && c.past_wide ? dtype::float32 : call.inputs[0].type, 1);
  return g.groups(call.outputs[0].dims.back()) <= int64_t{call.gpu.units} && g.team >= neighbours &&
         c.keys * (c.width + c.value_width) * element <= many_bytes;
}

launch_lists attention_projection_launches(const gpu_call& call) {
  launch_lists lists = launches_of_parts(call, parts_of_attention_projection(call.attrs, call.inputs, call.outputs));
  if (lists.empty())
    return {};
  const attention_call c = fused_attention_call(call);
  const int64_t vector = 16 / bytes_of(call.inputs[0].type, 1);
  const auto g = group_of(call, c, vector);
  if (auto list = g ? list_for(call, c, *g, vector) : std::nullopt)
    lists.insert(pays(call, c, *g) ? lists.begin() : lists.end(), std::move(*list));
  return lists;
}

} // namespace

extern constinit const launch_rows attention_projection_rules = {
    {"troupe", "AttentionProjection", attention_projection_launches},
};

} // namespace troupe
