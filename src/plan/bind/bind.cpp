#include "graph/known_tensor.hpp"
#include "plan/bind/bind_shapes.hpp"
#include "plan/bind/bound_plan.hpp"
#include "plan/bind/operand_checks.hpp"
#include "plan/cut/joined_parts.hpp"
#include "plan/estimate/gpu_support.hpp"

#include <algorithm>
#include <atomic>

namespace troupe {
namespace {

uint64_t next_bound_plan_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

bool fits(const arena_layout& l, const bindings& values) {
  return std::all_of(l.symbols.begin(), l.symbols.end(), [&](const symbol_capacity& symbol) {
    const auto value = values.find(symbol.name);
    return value != values.end() &&
           (symbol.varies ? value->second <= symbol.capacity : value->second == symbol.capacity);
  });
}

/// Sets the dims; returns whether every value has room.
bool bind_shapes(bound_plan& b, const slot_values& slots) {
  const arena_layout& l = *b.layout;
  b.dims = l.dims;
  bool has_room = true;
  for (size_t v = 0; v < b.dims.size(); ++v)
    if (l.varies[v])
      has_room = bind_shape(*b.source, static_cast<value_id>(v), slots, b.dims[v]) <= l.bytes[v] && has_room;
  for (size_t v = 0; v < b.dims.size(); ++v)
    if (l.varies[v] || l.varies[b.source->storage[v]])
      check_view(*b.source, b.segment, static_cast<value_id>(v), b.dims);
  return has_room;
}

void bind_known(bound_plan& b, const slot_values& slots) {
  const plan& p = *b.source;
  b.known.resize(p.program->values.size());
  std::vector<int64_t> elements;
  for (value_id v : p.known_values[b.segment]) {
    elements.clear();
    for (dim_program::slot slot : p.slots[v].known)
      elements.push_back(slots[p.segment_of_value[v]][slot]);
    b.known[v] = known_tensor(p.program->values[v], b.dims[v], elements);
  }
}

} // namespace

bound_plan_ptr bind_in(const arena_layout_ptr& layout, const bindings& values) {
  if (!fits(*layout, values))
    return nullptr;
  auto b = std::make_shared<bound_plan>();
  b->id = next_bound_plan_id();
  b->source = layout->source;
  b->segment = layout->segment;
  b->layout = layout;
  b->values = values;
  const slot_values slots = evaluate_dims(*b->source, b->segment, values);
  // Before shapes: its errors name the node and its operands, and not a value that follows from them.
  check_operands(*b->source, b->segment, values);
  if (!bind_shapes(*b, slots))
    return nullptr;
  bind_known(*b, slots);
  return b;
}

bound_plan_ptr bind_segment(std::shared_ptr<const plan> p, uint32_t segment, const bindings& values) {
  return bind_in(make_layout(std::move(p), segment, values), values);
}

gpu_call make_gpu_call(const bound_plan& bound, const node& n, const gpu_features& gpu) {
  const plan& p = *bound.source;
  const auto operand_of = [&](value_id v) -> operand {
    if (v == no_value)
      return {};
    const value& info = p.program->values[v];
    operand o{.type = info.type, .layout = info.layout, .constant = info.constant, .known = bound.known[v]};
    o.unsized = p.segment_of_value[v] > bound.segment;
    if (!o.unsized)
      o.dims = info.constant ? info.constant->dims : bound.dims[v];
    return o;
  };
  gpu_call call{n.attrs, {}, {}, gpu};
  for (value_id v : n.inputs)
    call.inputs.push_back(operand_of(v));
  for (value_id v : n.outputs) {
    call.outputs.push_back(operand_of(v));
    if (v != no_value && is_part(p, v))
      call.outputs.back().part = part_of(p, v, volume(bound.dims[p.storage[v]]));
  }
  if (const operand* o = find_too_large(call))
    fail(errc::unsupported, "{}: an operand of shape {} has 2^32 elements or more, which GPU kernels do not count",
         describe(n), to_string(std::span<const int64_t>(o->dims)));
  return call;
}

} // namespace troupe
