// Attention of few queries, such as a decode step's: a group a row of the result (shaders/attention_row.comp), or several that each
// see a split of many keys. Past keys and values may be operands of their own.
#include "launch/attention.hpp"
#include "ops/head_layout.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

/// A group, and the keys that it sees.
struct row_group {
  uint32_t threads, lanes, key_vectors, value_vectors, width; // width: elements of a vector
  int64_t split_keys;

  uint32_t slices() const { return std::bit_floor(threads / value_vectors); }
  int64_t shared_bytes() const {
    const uint32_t work = std::max(lanes * (threads + 4), (width + 1) * threads);
    return 4 * (int64_t{work} + threads + 32 + int64_t{key_vectors} * width);
  }
};

/// Whether the kernel computes what the call asks for, in whole vectors.
bool fits(const gpu_call& call, const attention_call& c, int64_t vector) {
  constexpr int64_t most_queries = 4, most_width = 512;
  const bool apart = c.past > 0;
  const dtype type = call.inputs[0].type;
  const bool wide = apart && c.past_wide; // which no other kernel reads
  return c.queries >= 1 && (wide || c.queries <= most_queries) && c.keys > 0 && c.width > 0 && c.width % vector == 0 &&
         c.value_width > 0 && c.value_width % vector == 0 && c.width <= most_width && c.value_width <= most_width &&
         c.softcap == 0 && !c.limited && !c.joined && !call.has_output(3) &&
         (!apart || wide || (call.inputs[past_key_input].type == type && call.inputs[past_value_input].type == type));
}

/// As many invocations as keys; more groups where one would see very many keys while multiprocessors idle.
std::optional<row_group> choose_group(const attention_call& c, int64_t vector, const gpu_features& gpu) {
  constexpr int64_t many_keys = 2048, enough_keys = 1024;
  row_group g{.key_vectors = word(c.width / vector),
              .value_vectors = word(c.value_width / vector),
              .width = word(vector),
              .split_keys = c.keys};
  g.lanes = std::bit_floor(std::min(8u, g.key_vectors));
  for (const uint32_t threads : {1024u, 512u, 256u, 128u}) {
    g.threads = threads;
    const bool wanted = threads <= 256 || c.keys > threads / 2;
    if (wanted && threads <= gpu.max_group_size && g.shared_bytes() <= gpu.shared_bytes)
      break;
    g.threads = 0;
  }
  if (g.threads == 0)
    return std::nullopt;
  const int64_t groups = c.batch * c.heads * c.queries;
  if (c.keys > many_keys && groups > 0 && groups < int64_t{gpu.units}) {
    const int64_t splits =
        std::min((c.keys + enough_keys - 1) / enough_keys, std::max<int64_t>(2, 2 * int64_t{gpu.units} / groups));
    const int64_t keys = (c.keys + splits - 1) / splits;
    g.split_keys = (keys + g.threads - 1) / g.threads * g.threads;
  }
  return g;
}

std::vector<uint32_t> parameters_of(const gpu_call& call, const attention_call& c, int64_t split_keys) {
  const int64_t present = c.keys - c.past;
  const auto k_steps = steps_of(c.kv_heads, present, c.width, c.new_behind, c.k_within),
             v_steps = steps_of(c.kv_heads, present, c.value_width, c.new_behind, c.v_within);
  return words_of(shader::attention_row{.rows = c.batch * c.heads * c.queries,
                                        .queries = c.queries,
                                        .heads = c.heads,
                                        .sharing = c.heads / c.kv_heads,
                                        .keys = c.keys,
                                        .past = c.past,
                                        .split_keys = split_keys,
                                        .mask_keys = c.mask_keys,
                                        .value_width = c.value_width,
                                        .causal_offset = static_cast<int>(c.causal_offset),
                                        .scale = c.scale,
                                        .q_steps = steps_of(c.heads, c.queries, c.width, c.q_behind, c.q_within),
                                        .k_steps = k_steps,
                                        .v_steps = v_steps,
                                        .past_k_steps = past_steps(c, c.width),
                                        .past_v_steps = past_steps(c, c.value_width),
                                        .y_steps = steps_of(c.heads, c.queries, c.value_width, c.y_behind),
                                        .mask_steps = mask_steps(call, c)});
}

} // namespace

std::optional<launch_list> attention_of_few_queries(const gpu_call& call, const attention_call& c,
                                                    const std::string& variant) {
  const int64_t vector = 16 / bytes_of(call.inputs[0].type, 1);
  if (!fits(call, c, vector))
    return std::nullopt;
  const auto group = choose_group(c, vector, call.gpu);
  if (!group)
    return std::nullopt;
  const row_group& g = *group;
  const int64_t rows = c.batch * c.heads * c.queries, splits = (c.keys + g.split_keys - 1) / g.split_keys;
  const bool split = splits > 1, apart = c.past > 0;
  launch_builder b(call, split ? "attention.row.split" : "attention.row");
  const launch_binding partial = split ? b.scratch(splits * rows * (2 + c.value_width) * 4) : launch_binding{};
  auto groups = flat_groups(rows, 1, call.gpu);
  groups[2] = word(splits);
  launch& l = b.add("attention_row." + variant, groups,
                    {b.in(0), b.in(1), b.in(2), b.in(call.has_input(3) ? 3 : 0), split ? written(partial) : b.out(0),
                     b.in(apart ? past_key_input : 1), b.in(apart ? past_value_input : 2)});
  l.constants = {g.threads,
                 g.lanes,
                 g.key_vectors,
                 g.value_vectors,
                 g.slices(),
                 attention_flags(call, c) | (split ? shader::attention_split : 0) |
                     (apart ? shader::attention_past : 0) | (apart && c.past_wide ? shader::attention_wide_past : 0)};
  l.params = parameters_of(call, c, g.split_keys);
  if (split)
    add_attention_join(b, call, c, variant, partial, splits);
  return b.finish();
}

} // namespace troupe
