// The steps of attention's operands, and GPU launches of what Attention gives besides its result: scores or weights
// (shaders/attention_scores.comp).
#include "launch/attention.hpp"
#include "tensor/shape.hpp"

namespace troupe {

shader::uvec4 steps_of(int64_t heads, int64_t positions, int64_t width, bool bshd, heads_within within) {
  const int64_t all = heads + within.others, head = bshd ? width : positions * width;
  return {all * positions * width, head, bshd ? all * width : width, within.before * head};
}

shader::uvec4 past_steps(const attention_call& c, int64_t width) {
  const int64_t row = c.kv_heads * width;
  return c.past_first ? shader::uvec4{row, width, c.batch * row} : steps_of(c.kv_heads, c.past, width, false);
}

shader::uvec4 mask_steps(const gpu_call& call, const attention_call& c) {
  if (!call.has_input(3))
    return {};
  const shape full{c.batch, c.heads, c.queries, c.mask_keys};
  const shape& mask = call.inputs[3].dims;
  if (broadcast(mask, full) != full)
    fail(errc::invalid_input, "attention: the mask {} does not fit {}", to_string(mask), to_string(full));
  const shape steps = broadcast_strides(mask, full);
  return {steps[0], steps[1], steps[2], steps[3]};
}

void add_attention_scores(launch_builder& b, const gpu_call& call, const attention_call& c,
                          const std::string& variant) {
  const int64_t mode = call.attrs.integer("qk_matmul_output_mode", 0), rows = c.batch * c.heads * c.queries;
  const bool whole_rows = mode == shader::scores_weights;
  launch& l =
      b.add("attention_scores." + variant, flat_groups(whole_rows ? rows : rows * c.keys, 128, call.gpu),
            {b.in(0), attention_rows(b, c, 1), b.in(call.has_input(3) ? 3 : 0), b.in(c.limited ? 6 : 0), b.out(3)});
  const bool bytes = call.has_input(3) && call.inputs[3].type == dtype::boolean;
  l.constants = {static_cast<uint32_t>(mode),
                 (call.has_input(3) ? shader::scores_mask : 0) | (bytes ? shader::scores_mask_bytes : 0) |
                     (c.causal ? shader::scores_causal : 0) | (c.limited ? shader::scores_limits : 0)};
  l.params = words_of(shader::attention_scores{.count = whole_rows ? rows : rows * c.keys,
                                               .heads = c.heads,
                                               .queries = c.queries,
                                               .keys = c.keys,
                                               .width = c.width,
                                               .sharing = c.heads / c.kv_heads,
                                               .mask_keys = c.mask_keys,
                                               .causal_offset = static_cast<int>(c.causal_offset),
                                               .scale = c.scale,
                                               .softcap = c.softcap,
                                               .q_steps = steps_of(c.heads, c.queries, c.width, c.q_bshd),
                                               .k_steps = steps_of(c.kv_heads, c.keys, c.width, c.kv_bshd),
                                               .mask_steps = mask_steps(call, c)});
}

} // namespace troupe
