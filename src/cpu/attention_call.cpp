#include "cpu/attention_call.hpp"

#include "ops/head_layout.hpp"
#include "tensor/shape.hpp"

#include <cmath>

namespace troupe {
namespace {

constexpr size_t mask_operand = 3, limit_operand = 6;

/// Of an operand of rank 4 with heads before or after positions, from head `first` on.
attention_strides strides_of_heads(const shape& dims, bool bshd, int64_t first = 0) {
  const int64_t head = bshd ? dims[3] : dims[2] * dims[3];
  return {dims[1] * dims[2] * dims[3], head, bshd ? dims[2] * dims[3] : dims[3], first * head};
}

void add_past(attention_call& c, const kernel_request& r) {
  c.past = 0;
  if (!r.has_input(past_key_input))
    return;
  c.past = r.inputs[past_key_input].dims[2];
  c.past_k = strides_of_heads(r.inputs[past_key_input].dims, false);
  c.past_v = strides_of_heads(r.inputs[past_value_input].dims, false);
}

/// The dims of an operand of ONNX's Attention: [batch, positions, heads, width] or, of rank 4, [batch, heads,
/// positions, width].
shape with_heads(const operand& o, int64_t heads) {
  const shape& d = o.dims;
  return d.size() == 4 ? d : shape{d[0], d[1], heads, d[2] / heads};
}

bool broadcasts_to(const shape& from, const shape& to) {
  if (from.size() > to.size())
    return false;
  for (size_t i = 1; i <= from.size(); ++i)
    if (const int64_t d = from[from.size() - i]; d != 1 && d != to[to.size() - i])
      return false;
  return true;
}

} // namespace

attention_call parse_fused_attention(const kernel_request& r) {
  const attributes& attrs = r.call.attrs;
  const bool q_bshd = is_bshd(attrs, "q_layout"), kv_bshd = is_bshd(attrs, "kv_layout");
  const shape &q = r.inputs[0].dims, &k = r.inputs[1].dims, &v = r.inputs[2].dims;
  const head_range q_heads = heads_read(attrs, 0, q[q_bshd ? 2 : 1]),
                   k_heads = heads_read(attrs, 1, k[kv_bshd ? 2 : 1]),
                   v_heads = heads_read(attrs, 2, v[kv_bshd ? 2 : 1]);
  attention_call c{};
  c.batch = q[0];
  c.heads = q_heads.count;
  c.groups = c.heads / k_heads.count;
  c.queries = q[q_bshd ? 1 : 2];
  c.width = q[3];
  c.value_width = v[3];
  add_past(c, r);
  c.keys = c.past + k[kv_bshd ? 1 : 2];
  c.q = strides_of_heads(q, q_bshd, q_heads.first);
  c.k = strides_of_heads(k, kv_bshd, k_heads.first);
  c.v = strides_of_heads(v, kv_bshd, v_heads.first);
  c.y = strides_of_heads(r.outputs[0].dims, is_bshd(attrs, "out_layout"));
  if (r.has_input(mask_operand))
    c.mask = broadcast_strides(r.inputs[mask_operand].dims, shape{c.batch, c.heads, c.queries, c.keys});
  c.mask_keys = c.keys;
  c.causal = attrs.integer("is_causal", 0) != 0;
  c.causal_offset = c.keys - c.queries;
  c.scale = attrs.real("scale", 1);
  return c;
}

std::optional<attention_call> parse_onnx_attention(const kernel_request& r) {
  const attributes& attrs = r.call.attrs;
  const bool flat = r.inputs[0].dims.size() == 3;
  const int64_t q_heads = flat ? attrs.integer("q_num_heads") : 0, kv_heads = flat ? attrs.integer("kv_num_heads") : 0;
  const shape q = with_heads(r.inputs[0], q_heads), k = with_heads(r.inputs[1], kv_heads),
              v = with_heads(r.inputs[2], kv_heads), y = with_heads(r.outputs[0], q_heads);
  const size_t head_axis = flat ? 2 : 1, position_axis = flat ? 1 : 2;
  attention_call c{};
  c.batch = q[0];
  c.heads = q[head_axis];
  c.groups = c.heads / k[head_axis];
  c.queries = q[position_axis];
  c.width = q[3];
  c.value_width = v[3];
  add_past(c, r);
  c.keys = c.past + k[position_axis];
  c.q = strides_of_heads(q, flat);
  c.k = strides_of_heads(k, flat);
  c.v = strides_of_heads(v, flat);
  c.y = strides_of_heads(y, flat);
  c.mask_keys = c.keys;
  if (r.has_input(mask_operand)) {
    const operand& mask = r.inputs[mask_operand];
    if (!mask.dims.empty() && mask.dims.back() != 1) // a single column is broadcast, a shorter row ends early
      c.mask_keys = mask.dims.back();
    const shape target{c.batch, c.heads, c.queries, c.mask_keys};
    if (c.mask_keys > c.keys || !broadcasts_to(mask.dims, target))
      return std::nullopt;
    c.mask = broadcast_strides(mask.dims, target);
    c.flags = mask.type == dtype::boolean;
  }
  c.limited = r.has_input(limit_operand);
  c.causal = attrs.integer("is_causal", 0) != 0;
  c.causal_offset = c.past;
  c.writes_keys = r.has_output(1);
  c.writes_values = r.has_output(2);
  c.skips = true;
  c.scale = attrs.has("scale") ? attrs.real("scale") : static_cast<float>(1 / std::sqrt(static_cast<double>(c.width)));
  c.softcap = attrs.real("softcap", 0.f);
  return c;
}

} // namespace troupe
