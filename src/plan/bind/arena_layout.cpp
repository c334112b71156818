#include "plan/bind/arena_layout.hpp"

#include "base/checked.hpp"
#include "plan/arena_space.hpp"
#include "plan/bind/bind_shapes.hpp"
#include "plan/bind/memory.hpp"
#include "plan/bind/operand_checks.hpp"

#include <algorithm>
#include <atomic>
#include <unordered_set>

namespace troupe {
namespace {

uint64_t next_layout_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

/// What depends on symbols that vary, by segment and slot.
using slot_flags = std::vector<std::vector<bool>>;

slot_flags varying_slots(const arena_layout& l) {
  std::unordered_set<std::string_view> varying;
  for (const symbol_capacity& symbol : l.symbols)
    if (symbol.varies)
      varying.insert(symbol.name);
  slot_flags flags;
  for (uint32_t s = 0; s <= l.segment; ++s) {
    std::vector<bool> which;
    for (const std::string& name : l.source->dims[s].symbols())
      which.push_back(varying.contains(name));
    flags.push_back(l.source->dims[s].dependents(which));
  }
  return flags;
}

void bind_capacities(arena_layout& l, const bindings& capacities, const slot_flags& flags) {
  const plan& p = *l.source;
  const slot_values slots = evaluate_dims(p, l.segment, capacities);
  const size_t count = p.program->values.size();
  l.dims.resize(count);
  l.bytes.assign(count, 0);
  l.varies.assign(count, false);
  for (size_t v = 0; v < count; ++v) {
    if (p.segment_of_value[v] > l.segment)
      continue;
    const std::vector<bool>& own = flags[p.segment_of_value[v]];
    const auto depends = [&](dim_program::slot slot) { return own[slot]; };
    l.varies[v] = std::any_of(p.slots[v].dims.begin(), p.slots[v].dims.end(), depends) ||
                  std::any_of(p.slots[v].known.begin(), p.slots[v].known.end(), depends);
    if (p.program->values[v].dims)
      l.bytes[v] = bind_shape(p, static_cast<value_id>(v), slots, l.dims[v]);
  }
  for (size_t v = 0; v < count; ++v)
    check_view(p, l.segment, static_cast<value_id>(v), l.dims);
}

/// Returns shapes that are equal only if dims are equal in every binding: in place of a dim that varies they have its
/// slot, below zero.
std::vector<shape> identities(const arena_layout& l, const slot_flags& flags) {
  const plan& p = *l.source;
  std::vector<shape> shapes = l.dims;
  for (size_t v = 0; v < shapes.size(); ++v)
    for (size_t axis = 0; l.varies[v] && axis < shapes[v].size(); ++axis) {
      const uint32_t segment = p.segment_of_value[v];
      const dim_program::slot slot = p.slots[v].dims[axis];
      if (flags[segment][slot])
        shapes[v][axis] = -1 - (static_cast<int64_t>(segment) << 32 | slot);
    }
  return shapes;
}

/// Bytes outside the arena by device: uploads, and roots of downloads, each once.
std::vector<int64_t> transfer_bytes(const arena_layout& l) {
  const plan& p = *l.source;
  std::vector<int64_t> sums(p.devices.size(), 0);
  std::vector<bool> counted(l.bytes.size(), false);
  for (chunk_id id = p.segment_begin[l.segment]; id < p.segment_begin[l.segment + 1]; ++id) {
    const chunk& c = p.chunks[id];
    if (!p.devices[c.device].host_memory)
      continue;
    for (value_id v : c.uploads)
      sums[c.device] = checked_add(sums[c.device], l.bytes[v]);
    for (value_id v : c.downloads) {
      const value_id root = root_on(p, c, v);
      const chunk* made_by = p.producer[root] < 0 ? nullptr : &p.chunks[p.chunk_of_node[p.producer[root]]];
      const bool own = made_by && made_by->device == c.device && made_by->segment == c.segment;
      if (own && !counted[root])
        sums[c.device] = checked_add(sums[c.device], l.bytes[root]);
      counted[root] = counted[root] || own;
    }
  }
  return sums;
}

void lay_out_devices(arena_layout& l, std::span<const shape> shapes) {
  const plan& p = *l.source;
  const std::vector<int64_t> transfers = transfer_bytes(l);
  l.memory.reserve(p.devices.size());
  for (size_t d = 0; d < p.devices.size(); ++d) {
    l.memory.push_back(lay_out(p.lifetimes[l.segment * p.devices.size() + d], shapes, l.bytes));
    l.memory[d].transfer_bytes = transfers[d];
  }
  check_memory(l);
}

} // namespace

int64_t slot_bytes(const arena_layout& l, device_index d) {
  return checked_add(l.memory[d].arena_bytes, l.memory[d].transfer_bytes);
}

int64_t bytes_needed(const arena_layout& l, device_index d) {
  return checked_add(slot_bytes(l, d), l.source->weight_bytes[d]);
}

void check_memory(const arena_layout& l, std::span<const int64_t> taken) {
  const plan& p = *l.source;
  std::vector<int64_t> needed;
  std::string shortages;
  size_t short_of_memory = 0;
  for (device_index d = 0; d < p.devices.size(); ++d) {
    const device_memory& m = l.memory[d];
    const int64_t others = d < taken.size() ? taken[d] : 0;
    needed.push_back(checked_add(bytes_needed(l, d), others));
    if (needed[d] <= p.devices[d].memory_bytes || needed[d] == others)
      continue;
    if (short_of_memory++ >= devices_in_message)
      continue;
    shortages += fmt::format(
        "{}device '{}': {} bytes needed (arena {}, weights {}, inputs and outputs {}{}), {} bytes allowed",
        shortages.empty() ? "" : "; ", p.devices[d].name, needed[d], m.arena_bytes, p.weight_bytes[d], m.transfer_bytes,
        others > 0 ? fmt::format(", the graph around it {}", others) : "", p.devices[d].memory_bytes);
  }
  if (short_of_memory > devices_in_message)
    shortages += fmt::format("; and {} devices more", short_of_memory - devices_in_message);
  if (!shortages.empty())
    throw memory_shortage(shortages, std::move(needed));
}

std::vector<std::string> symbols_of(const plan& p, uint32_t segment) {
  std::vector<std::string> names;
  std::unordered_set<std::string_view> seen; // a model of very many inputs has as many symbols
  for (uint32_t s = 0; s <= segment; ++s)
    for (const std::string& name : p.dims[s].symbols())
      if (seen.insert(name).second)
        names.push_back(name);
  return names;
}

arena_layout_ptr make_layout(std::shared_ptr<const plan> p, uint32_t segment, const bindings& capacities,
                             const std::vector<std::string>& varying) {
  if (segment >= p->segment_count)
    fail(errc::invalid_argument, "segment {} does not exist; the plan has {}", segment, p->segment_count);
  auto l = std::make_shared<arena_layout>();
  l->id = next_layout_id();
  l->source = std::move(p);
  l->segment = segment;
  const std::unordered_set<std::string_view> may_vary(varying.begin(), varying.end());
  for (std::string& name : symbols_of(*l->source, segment)) {
    const auto value = capacities.find(name);
    const bool varies = may_vary.contains(name);
    l->symbols.push_back({std::move(name), value == capacities.end() ? 0 : value->second, varies});
  }
  const slot_flags flags = varying_slots(*l);
  try {
    bind_capacities(*l, capacities, flags);
  } catch (const error&) {
    check_operands(*l->source, segment, capacities); // which names the node
    throw;
  }
  lay_out_devices(*l, varying.empty() ? l->dims : identities(*l, flags));
  return l;
}

} // namespace troupe
