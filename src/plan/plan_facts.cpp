// The small functions of plan.hpp: what a plan says of its devices, nodes and values.
#include "ops/op.hpp"
#include "plan/plan.hpp"

#include <algorithm>

namespace troupe {

std::vector<device_info> real_devices(const plan& p) {
  std::vector<device_info> devices = p.devices;
  std::erase_if(devices, [](const device_info& d) { return d.kind == device_kind::control; });
  return devices;
}

bool is_view(const node& n) {
  return n.def && n.def->alias == aliasing::view && !n.inputs.empty() && n.inputs[0] != no_value &&
         !n.outputs.empty() && n.outputs[0] != no_value;
}

bool is_part(const plan& p, value_id v) {
  return p.storage[v] != v && p.producer[v] >= 0 && !is_view(p.program->nodes[p.producer[v]]);
}

bool is_joined(const plan& p, const node& n) {
  return !n.inputs.empty() && n.inputs[0] != no_value && !n.outputs.empty() && n.outputs[0] != no_value &&
         p.storage[n.inputs[0]] == n.outputs[0] && n.inputs[0] != n.outputs[0];
}

bool launches_nothing(const plan& p, const node& n) {
  return is_view(n) || is_joined(p, n);
}

bool is_awaited(const plan& p, chunk_id id) {
  return std::ranges::any_of(p.chunks[id].dependents,
                             [&](chunk_id after) { return p.chunks[after].device != p.chunks[id].device; });
}

bool is_for(const plan& p, const bindings& values) {
  return std::ranges::all_of(p.nonnegative, [&](const dim& d) { return d.evaluate(values) >= 0; });
}

value_id root_on(const plan& p, const chunk& c, value_id v) {
  const node_id from = p.producer[v];
  if (from < 0)
    return v;
  const chunk& made_by = p.chunks[p.chunk_of_node[from]];
  return made_by.device == c.device && made_by.segment == c.segment ? p.storage[v] : v;
}

void bind_data_symbols(const plan& p, value_id v, const shape& dims, bindings& values) {
  for (const data_symbol& symbol : p.symbols)
    if (symbol.value == v) {
      expects(symbol.axis < dims.size(), "bind_data_symbols: the computed value has too few dims");
      values[symbol.name] = dims[symbol.axis];
    }
}

} // namespace troupe
