// GPU launch of LinearAttention (shaders/linear_attention.comp): an invocation a column of a state.
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

launch_lists linear_attention_launches(const gpu_call& call) {
  constexpr size_t past_input = 3, decay_input = 4, beta_input = 5;
  const dtype type = call.inputs.at(0).type;
  const auto variant = float_variant(type, call.gpu);
  const auto is_other = [&](const operand& o) { return o.present() && o.type != type; };
  if (!variant || std::ranges::any_of(call.inputs, is_other) || std::ranges::any_of(call.outputs, is_other))
    return {};
  const std::string rule = call.attrs.text("update_rule", "gated_delta");
  const bool decays = rule == "gated" || rule == "gated_delta", corrects = rule == "delta" || rule == "gated_delta";
  const int64_t q_heads = call.attrs.integer("q_num_heads"), heads = call.attrs.integer("kv_num_heads");
  const shape &q = call.inputs[0].dims, &v = call.inputs[2].dims;
  const int64_t keys = q.at(2) / q_heads, values = v.at(2) / heads, count = q[0] * heads * values;
  if ((decays && !call.has_input(decay_input)) || (corrects && !call.has_input(beta_input)))
    return {};
  uint32_t flags = (call.has_input(past_input) ? shader::linear_past : 0) |
                   (call.has_output(1) ? shader::linear_present : 0) | (decays ? shader::linear_decay : 0) |
                   (corrects ? shader::linear_beta : 0);
  if (decays && call.inputs[decay_input].dims.at(2) != heads)
    flags |= shader::linear_decay_rows;
  if (corrects && call.inputs[beta_input].dims.at(2) != heads)
    flags |= shader::linear_shared_beta;
  const float stated = call.attrs.real("scale", 0);
  launch_builder b(call, "linear_attention");
  const launch_binding states = b.scratch(std::max<int64_t>(1, count * keys) * 4);
  const auto input = [&](size_t i) { return b.in(call.has_input(i) ? i : 0); };
  launch& l = b.add("linear_attention." + *variant, flat_groups(count, 64, call.gpu),
                    {b.in(0), b.in(1), b.in(2), input(past_input), input(decay_input), input(beta_input), b.out(0),
                     b.out(call.has_output(1) ? 1 : 0), written(states)});
  l.constants = {flags};
  l.params = words_of(shader::linear_attention{
      .count = count,
      .steps = q[1],
      .keys = keys,
      .values = values,
      .heads = heads,
      .group = q_heads / heads,
      .scale = stated != 0 ? stated : 1 / std::sqrt(static_cast<float>(std::max<int64_t>(1, keys)))});
  return single_list(b);
}

} // namespace

extern constinit const launch_rows linear_attention_rules = {
    {"", "LinearAttention", linear_attention_launches},
};

} // namespace troupe
