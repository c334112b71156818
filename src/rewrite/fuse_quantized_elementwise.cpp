// Elementwise chains between DequantizeLinear and QuantizeLinear become one troupe.QuantizedElementwise, which reads
// and writes bytes.
#include "ops/composed/fused_elementwise.hpp"
#include "ops/registry.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"
#include "rewrite/quantized_values.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Returns the program that node `n` is over its float32 inputs; nullopt if it is none.
std::optional<elementwise_program> program_of(const graph_editor& e, const node& n) {
  const bool typed = n.outputs.size() == 1 && n.outputs[0] != no_value && e.val(n.outputs[0]).type == dtype::float32 &&
                     std::all_of(n.inputs.begin(), n.inputs.end(), [&](value_id v) {
                       return v != no_value && e.val(v).type == dtype::float32 && e.val(v).dims;
                     });
  if (!typed || !e.val(n.outputs[0]).dims)
    return std::nullopt;
  if (is_own(n, "Elementwise"))
    return parse_elementwise(n.attrs, n.inputs.size());
  const bool old_broadcast = n.def->since < 7 && n.attrs.has("broadcast");
  const auto call = n.domain.empty() && !old_broadcast ? scalar_call_of(e, n) : std::nullopt;
  return call && call->values == std::ssize(n.inputs) ? std::optional(single_step(*call)) : std::nullopt;
}

/// Fuses node `n` with the DequantizeLinears before it and the QuantizeLinear after it.
bool fuse(graph_editor& e, node_id n) {
  const auto program = program_of(e, e.at(n));
  if (!program)
    return false;
  const size_t count = e.at(n).inputs.size();
  if (3 * count + 2 > find_op("troupe", "QuantizedElementwise", 1)->inputs.max)
    return false;
  const value_id y = e.at(n).outputs[0];
  const node_id next = e.used_once(y) ? e.only_consumer(y) : -1;
  const auto q = quantisation_of(e, next);
  std::vector<value_id> inputs;
  bool any = q.has_value();
  for (const value_id v : e.at(n).inputs) {
    const auto x = dequantised_tensor(e, v);
    any |= x.has_value();
    if (x)
      inputs.insert(inputs.end(), {x->elements, x->scale, x->zero});
    else
      inputs.insert(inputs.end(), {v, no_value, no_value});
  }
  if (!any)
    return false;
  if (q)
    inputs.insert(inputs.end(), {q->scale, q->zero});
  node fused = make_node(e.at(n).name + (q ? "+quantize" : ""), "troupe", "QuantizedElementwise", std::move(inputs),
                         {q ? q->elements : y}, to_attributes(*program));
  fused.attrs.set("operands", static_cast<int64_t>(count));
  return e.replace(q ? next : n, std::move(fused));
}

/// QuantizeLinear `n` of what was dequantised with other parameters.
bool fuse_requantisation(graph_editor& e, node_id n) {
  const auto q = quantisation_of(e, n);
  const auto x = q ? dequantised_tensor(e, e.at(n).inputs[0]) : std::nullopt;
  if (!x)
    return false;
  node fused =
      make_node(e.at(n).name, "troupe", "QuantizedElementwise", {x->elements, x->scale, x->zero, q->scale, q->zero},
                {q->elements}, to_attributes({{{scalar_code::same, 0}}, {}}));
  fused.attrs.set("operands", int64_t{1});
  return e.replace(n, std::move(fused));
}

} // namespace

bool fuse_quantized_elementwise(graph_editor& e) {
  return each_node(e, [&](node_id n) { return fuse(e, n) || fuse_requantisation(e, n); });
}

} // namespace troupe
