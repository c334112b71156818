#include "wire/plans.hpp"

#include "base/guard.hpp"
#include "base/limits.hpp"
#include "graph/dim_budget.hpp"
#include "ops/op.hpp"
#include "wire/check_program.hpp"
#include "wire/facts.hpp"
#include "wire/graphs.hpp"

#include <algorithm>

namespace troupe::wire {

/// Of `cut_program`, flat, and what tells which plan it is.
struct flat_plan {
  hash128 fingerprint;
  flat_graph program;
  std::vector<device_info> devices;
  std::vector<device_index> placement;
  std::vector<uint8_t> inserted;
  std::vector<chunk_id> chunk_of_node;
};

struct flat_binding {
  uint64_t id = 0, layout = 0;
  uint32_t segment = 0;
  std::vector<symbol_capacity> symbols;
  bindings values;
};

template <class Archive>
void visit(Archive& a, flat_plan& p) {
  a(p.fingerprint, p.program, p.devices, p.placement, p.inserted, p.chunk_of_node);
}

template <class Archive>
void visit(Archive& a, symbol_capacity& s) {
  a(s.name, s.capacity, s.varies);
}

template <class Archive>
void visit(Archive& a, flat_binding& b) {
  a(b.id, b.layout, b.segment, b.symbols, b.values);
}

std::vector<uint8_t> encode_plan(const plan& p, const content_hashes& content_of) {
  return encode(flat_plan{fingerprint(p), flatten(*p.program, content_of), p.devices, p.placement,
                          std::vector<uint8_t>(p.inserted.begin(), p.inserted.end()), p.chunk_of_node});
}

namespace {

void check_tables(const flat_plan& flat) {
  const size_t nodes = flat.program.nodes.size();
  if (flat.placement.size() != nodes || flat.inserted.size() != nodes || flat.chunk_of_node.size() != nodes)
    fail(errc::invalid_input, "a plan from another host places {} nodes and cuts {}, but it has {}",
         flat.placement.size(), flat.chunk_of_node.size(), nodes);
  if (nodes > static_cast<size_t>(limits::max_nodes))
    fail(errc::unsupported, "a plan from another host has {} nodes; at most {} are supported", nodes,
         limits::max_nodes);
}

decoded_plan decode_within_limits(std::span<const uint8_t> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  const dim_budget dims(limits::dim_characters + limits::dim_characters_a_byte * size);
  auto flat = decode<flat_plan>(bytes);
  check_tables(flat);
  decoded_plan made;
  made.fingerprint = flat.fingerprint;
  auto program = std::make_shared<graph>(make_graph(std::move(flat.program), bytes.size(), made.leaves));
  made.open_nodes = check_program(*program, flat.devices, flat.placement);
  made.source =
      restore_plan({std::move(program), std::move(flat.devices), std::move(flat.placement),
                    std::vector<bool>(flat.inserted.begin(), flat.inserted.end()), std::move(flat.chunk_of_node)});
  return made;
}

} // namespace

decoded_plan derive_plan(std::span<const uint8_t> bytes) {
  return guarded("a plan from another host", [&] { return decode_within_limits(bytes); });
}

decoded_plan decode_plan(std::span<const uint8_t> bytes) {
  decoded_plan made = derive_plan(bytes);
  if (fingerprint(*made.source) != made.fingerprint)
    fail(errc::invalid_plan,
         "this host derives another plan than the one that sent it; run the same version of troupe on all of them");
  return made;
}

void fill(weight& leaf, tensor bytes) {
  if (bytes.type() != leaf.type || bytes.dims() != leaf.dims)
    fail(errc::invalid_input, "a weight is {} {}, not {} {}", to_string(leaf.type), to_string(leaf.dims),
         to_string(bytes.type()), to_string(bytes.dims()));
  leaf.leaf = std::move(bytes);
}

std::vector<hash128> leaves_needed(const plan& p, device_index device) {
  std::unordered_set<const weight*> seen;
  std::vector<hash128> missing;
  for (size_t n = 0; n < p.placement.size(); ++n)
    if (p.placement[n] == device)
      for (value_id v : p.program->nodes[n].inputs)
        if (v != no_value && p.program->values[v].constant)
          collect_missing(*p.program->values[v].constant, seen, missing);
  return missing;
}

namespace {

template <class T>
void add_all(hasher& h, const std::vector<T>& numbers) {
  h.add(std::span<const T>(numbers));
}

void add_chunk(hasher& h, const chunk& c) {
  h.add(c.device);
  h.add(c.segment);
  h.add(c.produces_outputs);
  add_all(h, c.nodes);
  add_all(h, c.wave_begin);
  add_all(h, c.uploads);
  add_all(h, c.downloads);
  add_all(h, c.predecessors);
}

void add_program(hasher& h, const plan& p) {
  const graph& g = *p.program;
  h.add(g.values.size());
  for (const value& v : g.values) {
    h.add(v.type);
    h.add(v.layout);
    h.add(v.dims ? std::string_view(to_string(*v.dims)) : "?");
    h.add(v.constant != nullptr);
    h.add(v.known ? std::string_view(to_string(*v.known)) : "?");
  }
  for (const node& n : g.nodes) {
    h.add(n.name);
    h.add(n.domain);
    h.add(n.op_type);
    h.add(n.def->since);
    add_all(h, n.inputs);
    add_all(h, n.outputs);
  }
  add_all(h, g.inputs);
  add_all(h, g.outputs);
}

} // namespace

hash128 fingerprint(const plan& p) {
  hasher h;
  add_program(h, p);
  h.add(p.chunks.size());
  for (const chunk& c : p.chunks)
    add_chunk(h, c);
  for (const transfer& t : p.transfers) {
    h.add(t.value);
    h.add(t.from ? *t.from : UINT32_MAX);
    h.add(t.to ? *t.to : UINT32_MAX);
    h.add(t.route);
  }
  h.add(p.segment_count);
  add_all(h, p.storage);
  add_all(h, p.segment_of_value);
  add_all(h, p.weight_bytes);
  for (const auto* lists : {&p.known_values, &p.open_operands})
    for (const auto& ids : *lists)
      add_all(h, ids);
  for (const device_lifetimes& l : p.lifetimes) {
    h.add(l.positions);
    for (const lifetime& v : l.values)
      for (uint32_t number : {static_cast<uint32_t>(v.value), v.first, v.last, v.reuse_begin, v.reuse_end})
        h.add(number);
  }
  return h.digest();
}

std::vector<uint8_t> encode_binding(const bound_plan& bound) {
  return encode(flat_binding{bound.id, bound.layout->id, bound.segment, bound.layout->symbols, bound.values});
}

namespace {

bool is_same(const symbol_capacity& a, const symbol_capacity& b) {
  return a.name == b.name && a.capacity == b.capacity && a.varies == b.varies;
}

arena_layout_ptr layout_of(const flat_binding& flat, const decoded_plan& p, layout_table& layouts) {
  if (const auto found = layouts.find(flat.layout); found != layouts.end()) {
    if (found->second->source != p.source || found->second->segment != flat.segment)
      fail(errc::invalid_input, "a binding from another host is in a layout of another plan");
    if (!std::ranges::equal(found->second->symbols, flat.symbols, is_same))
      fail(errc::invalid_input, "a layout from another host has other symbols than before");
    return found->second;
  }
  bindings capacities;
  std::vector<std::string> varying;
  for (const symbol_capacity& s : flat.symbols) {
    if (s.capacity < 0)
      fail(errc::invalid_input, "a layout from another host has room for {} = {}", s.name, s.capacity);
    capacities[s.name] = s.capacity;
    if (s.varies)
      varying.push_back(s.name);
  }
  return layouts[flat.layout] = make_layout(p.source, flat.segment, capacities, varying);
}

decoded_binding bind_as_sent(const flat_binding& flat, const decoded_plan& p, layout_table& layouts) {
  if (flat.segment >= p.source->segment_count)
    fail(errc::invalid_input, "a binding from another host is of segment {}, but the plan has {}", flat.segment,
         p.source->segment_count);
  for (const auto& [name, value] : flat.values)
    if (value < 0)
      fail(errc::invalid_input, "a binding from another host says that {} = {}", name, value);
  decoded_binding made{flat.id, bind_in(layout_of(flat, p, layouts), flat.values)};
  if (!made.bound)
    fail(errc::invalid_input, "a binding from another host does not fit its layout");
  check_numbers(*made.bound, p.open_nodes);
  return made;
}

} // namespace

decoded_binding decode_binding(std::span<const uint8_t> bytes, const decoded_plan& p, layout_table& layouts) {
  return guarded("a binding from another host", [&] { return bind_as_sent(decode<flat_binding>(bytes), p, layouts); });
}

} // namespace troupe::wire
