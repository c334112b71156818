#include "plan/estimate/wide_floats.hpp"

#include "graph/bodies.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"

#include <algorithm>

namespace troupe {

dtype_set wide_types(const gpu_features& gpu) {
  return gpu.float16 ? set_of(dtype::bfloat16) : 0; // kernels that convert store 16 bits
}

dtype_set wide_types(const device_info& device) {
  if (device.gpu)
    return wide_types(*device.gpu);
  const bool computes = device.kind == device_kind::cpu || device.kind == device_kind::slow;
  return computes ? set_of(dtype::float16, dtype::bfloat16) : 0;
}

bool is_narrow_operand(const node& n, size_t i, dtype type, dtype_set narrow) {
  return n.inputs[i] != no_value && (narrow & set_of(type)) && !(i < 32 && (n.def->host_inputs >> i & 1));
}

weight_ptr widened(const weight_ptr& w) {
  attributes to;
  to.set("to", static_cast<int64_t>(dtype::float32));
  return make_step(row_of(inserted_op::cast), std::move(to), {w}, dtype::float32, w->dims);
}

bool moves_elements(const node& n) {
  constexpr dtype_set both = set_of(dtype::boolean, dtype::float32);
  return (n.def->types & both) == both && !n.def->cost;
}

bool has_wide_form(const graph& g, const node& n, dtype_set narrow) {
  if (!narrow || !n.def || !n.def->infer || has_body(n) || n.def->converts) // which rounds to what the model says
    return false;
  const auto other = [&](value_id v) { return v != no_value && !(narrow & set_of(g.values[v].type)); };
  if (std::any_of(n.outputs.begin(), n.outputs.end(), other))
    return false;
  graph wide;
  node call = n;
  bool reads = false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (n.inputs[i] == no_value)
      continue;
    value operand = g.values[n.inputs[i]];
    if (is_narrow_operand(n, i, operand.type, narrow)) {
      operand = {.name = operand.name, .type = dtype::float32, .dims = operand.dims};
      reads = true;
    }
    call.inputs[i] = wide.add_value(std::move(operand));
  }
  for (value_id& v : call.outputs)
    v = v == no_value ? no_value : wide.add_value({.name = g.values[v].name});
  if (!reads)
    return false;
  try {
    infer_node(wide, call);
  } catch (const error&) {
    return false; // an operator that takes no float32 there
  }
  return std::all_of(call.outputs.begin(), call.outputs.end(),
                     [&](value_id v) { return v == no_value || wide.values[v].type == dtype::float32; });
}

} // namespace troupe
