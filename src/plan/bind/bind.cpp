#include "plan/bind/bind_shapes.hpp"
#include "plan/bind/bound_plan.hpp"
#include "plan/bind/known_tensor.hpp"
#include "plan/bind/operand_checks.hpp"

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
  check_operands(*b->source, b->segment, values);
  if (!bind_shapes(*b, slots))
    return nullptr;
  bind_known(*b, slots);
  return b;
}

bound_plan_ptr bind_segment(std::shared_ptr<const plan> p, uint32_t segment, const bindings& values) {
  return bind_in(make_layout(std::move(p), segment, values), values);
}

void bind_data_symbols(const plan& p, value_id v, const shape& dims, bindings& values) {
  for (const data_symbol& symbol : p.symbols)
    if (symbol.value == v) {
      expects(symbol.axis < dims.size(), "bind_data_symbols: the computed value has too few dims");
      values[symbol.name] = dims[symbol.axis];
    }
}

} // namespace troupe
