#include "plan/compile.hpp"

#include "base/checked.hpp"
#include "base/limits.hpp"
#include "graph/bodies.hpp"
#include "ops/graph_hash.hpp"
#include "plan/bind/lifetimes.hpp"
#include "plan/bind/operand_checks.hpp"
#include "plan/cut/adjust_chunks.hpp"
#include "plan/cut/chunks.hpp"
#include "plan/cut/joined_parts.hpp"
#include "plan/cut/segments.hpp"
#include "plan/cut/split_transfers.hpp"
#include "plan/cut/transfers.hpp"
#include "plan/cut/waves.hpp"
#include "plan/estimate/predict.hpp"
#include "plan/place/annotated.hpp"
#include "plan/place/layout.hpp"
#include "plan/place/node_order.hpp"
#include "plan/place/placement.hpp"
#include "plan/place/widen.hpp"
#include "plan/prepared_graph.hpp"
#include "plan/saved_plan.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace troupe {
namespace {

/// Compiles every dim and host-known element into the program of its value's segment.
void compile_dims(plan& p) {
  p.dims.resize(p.segment_count);
  p.slots.resize(p.program->values.size());
  for (size_t v = 0; v < p.slots.size(); ++v) {
    const value& info = p.program->values[v];
    if (p.segment_of_value[v] >= p.segment_count || !info.dims)
      continue; // only the value itself will tell
    dim_program& program = p.dims[p.segment_of_value[v]];
    for (const dim& d : *info.dims)
      p.slots[v].dims.push_back(program.add(d));
    if (info.known && p.producer[v] < 0)
      for (const dim& d : *info.known)
        p.slots[v].known.push_back(program.add(d));
  }
}

void find_known_values(plan& p) {
  const graph& g = *p.program;
  p.known_values.resize(p.segment_count);
  const auto add = [&](value_id v, uint32_t segment) {
    if (v != no_value && g.values[v].known && !g.values[v].constant && p.producer[v] < 0)
      p.known_values[segment].push_back(v);
  };
  for (const chunk& c : p.chunks)
    for (node_id n : c.nodes)
      for (value_id v : g.nodes[n].inputs)
        add(v, c.segment);
  for (value_id v : g.outputs)
    add(v, p.segment_of_value[v]);
  for (auto& values : p.known_values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
}

void sum_weights(plan& p) {
  p.weight_bytes.assign(p.devices.size(), 0);
  std::set<std::pair<device_index, value_id>> counted;
  for (size_t n = 0; n < p.placement.size(); ++n)
    for (value_id v : p.program->nodes[n].inputs) {
      if (v == no_value || !p.program->values[v].constant || !counted.emplace(p.placement[n], v).second)
        continue;
      const weight& w = *p.program->values[v].constant;
      int64_t& sum = p.weight_bytes[p.placement[n]];
      sum = checked_add(sum, bytes_of(w.type, volume(w.dims)));
    }
}

/// Gives every control-flow node a device of its own.
void place_control_flow(plan& p, const graph& g) {
  for (node_id n = 0; n < static_cast<node_id>(g.nodes.size()); ++n) {
    if (!has_body(g.nodes[n]))
      continue;
    p.placement[n] = static_cast<device_index>(p.devices.size());
    p.devices.push_back({.name = describe(g.nodes[n]),
                         .kind = device_kind::control,
                         .description = "executes bodies",
                         .memory_bytes = INT64_MAX / 2});
  }
}

/// Returns which nodes of `g` are not among `names`, which are in the order of the others.
std::vector<bool> find_inserted(const graph& g, const std::vector<std::string>& names) {
  std::vector<bool> inserted;
  size_t next = 0;
  for (const node& n : g.nodes) {
    const bool own = next < names.size() && n.name == names[next];
    inserted.push_back(!own);
    next += own;
  }
  expects(next == names.size(), "find_inserted: a node is gone");
  return inserted;
}

/// Places the nodes, unless they are already, and inserts what moves and reorders values; returns their chunks if a
/// saved plan decides.
chunk_assignment place_and_insert(graph& g, plan& p) {
  chunk_assignment given;
  if (p.options.saved)
    p.placement = place_as_saved(g, p.structure, p.devices, *p.options.saved, given);
  else if (p.placement.empty())
    p.placement = place(g, p.devices, p.options);
  if (!p.options.saved && !p.split)
    for (std::string& remark : annotation_remarks(g, p.devices, p.placement))
      p.remarks.push_back(std::move(remark));
  place_control_flow(p, g);
  if (!p.options.saved)
    order_nodes(g, p.placement, p.devices, p.options.expected);
  std::vector<std::string> names;
  for (const node& n : g.nodes)
    names.push_back(n.name);
  split_transfers(g, p.placement, p.devices);
  // Before layouts: CPUs have channels-last kernels for float32 and none for float16.
  widen_floats(g, p.placement, p.devices);
  assign_layouts(g, p.placement, p.devices);
  p.inserted = find_inserted(g, names);
  name_nodes(g);
  return p.options.saved ? include_inserted(g, p.inserted, p.placement, p.devices, *p.options.saved, given) : given;
}

/// A chunk is in one segment: what a segment's shapes need is computed by those before it. Inserted nodes find their
/// own.
void check_saved_segments(const graph& g, const plan& p, const chunk_assignment& given, const segmentation& segments) {
  std::optional<size_t> last;
  for (size_t n = 0; n < given.size(); ++n) {
    if (p.inserted[n])
      continue;
    if (last && given[n] == given[*last] && segments.of_node[n] != segments.of_node[*last])
      fail(errc::invalid_plan, "{}: '{}' and '{}' cannot be in one chunk: shapes depend on data in between",
           p.options.saved->source, g.nodes[*last].name, g.nodes[n].name);
    last = n;
  }
}

void index_chunks(plan& p) {
  p.chunk_of_node.resize(p.program->nodes.size());
  p.segment_begin.assign(p.segment_count + 1, 0);
  for (chunk_id c = 0; c < p.chunks.size(); ++c) {
    ++p.segment_begin[p.chunks[c].segment + 1];
    for (node_id n : p.chunks[c].nodes)
      p.chunk_of_node[n] = c;
  }
  for (uint32_t s = 0; s < p.segment_count; ++s)
    p.segment_begin[s + 1] += p.segment_begin[s];
}

/// Returns `plan::storage`: roots of views, by value.
std::vector<value_id> find_storage(const graph& program, std::span<const node_id> producer,
                                   std::span<const device_index> placement, std::span<const uint32_t> segment_of_node) {
  std::vector<value_id> storage(program.values.size());
  for (size_t v = 0; v < storage.size(); ++v)
    storage[v] = static_cast<value_id>(v);
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    const node& call = program.nodes[n];
    if (!is_view(call))
      continue;
    const value_id source = call.inputs[0];
    const node_id from = producer[source];
    const bool local = from >= 0 && placement[from] == placement[n] && segment_of_node[from] == segment_of_node[n];
    storage[call.outputs[0]] = local ? storage[source] : source;
  }
  return storage;
}

/// Cuts the placed graph into segments, chunks and waves; `given` holds every node's chunk where it is decided.
void cut_chunks(plan& p, const std::shared_ptr<const graph>& g, const chunk_assignment& given) {
  adjacency edges = adjacency_of(*g);
  segmentation segments = find_segments(*g, edges.producer);
  if (p.options.saved)
    check_saved_segments(*g, p, given, segments);
  p.chunks = build_chunks(*g, edges, p.placement, segments, given);
  p.segment_count = segments.count;
  p.storage = find_storage(*g, edges.producer, p.placement, segments.of_node);
  p.program = g;
  p.symbols = std::move(segments.symbols);
  join_parts(p, edges, segments.of_node);
  p.producer = std::move(edges.producer);
  p.segment_of_value = std::move(segments.of_value);
  index_chunks(p);
  p.transfers = find_transfers(p);
  order_by_wave(p);
}

/// Returns whether chunks may be worth cutting or joining. Those of a saved plan are as it says; round-robin is for
/// moving as much as can be.
bool may_adjust(const plan& p) {
  const bool cuts = std::any_of(p.chunks.begin(), p.chunks.end(), [&](const chunk& c) {
    return p.devices[c.device].copies_beside_work && c.wave_count() > 1 && !p.options.values_stay;
  });
  return !p.options.saved && p.options.policy != placement_policy::round_robin && (cuts || p.chunks.size() > 1);
}

/// Cuts the chunks anew if predicted times say so.
void move_boundaries(plan& p, const std::shared_ptr<graph>& g) {
  const auto better = adjust_chunks(p, expected_dims(*g, p.options.expected));
  if (!better)
    return;
  std::vector<node> nodes;
  std::vector<device_index> placement;
  std::vector<bool> inserted;
  for (node_id n : better->order) {
    nodes.push_back(std::move(g->nodes[n]));
    placement.push_back(p.placement[n]);
    inserted.push_back(p.inserted[n]);
  }
  g->nodes = std::move(nodes);
  p.placement = std::move(placement);
  p.inserted = std::move(inserted);
  cut_chunks(p, g, better->chunk_of);
  p.remarks.push_back(better->remark);
}

/// Derives what follows from the chunks.
void complete(plan& p) {
  compile_dims(p);
  find_known_values(p);
  p.open_operands = find_open_operands(p);
  p.open_calls = find_open_calls(p);
  sum_weights(p);
  p.lifetimes = find_lifetimes(p);
}

} // namespace

std::shared_ptr<plan> compile(const graph& prepared, const std::vector<device_info>& devices,
                              const plan_options& options, const split_program* cut) {
  auto p = std::make_shared<plan>();
  auto g = std::make_shared<graph>(cut ? cut->program : prepared);
  p->options = options;
  p->structure = structure_of(prepared);
  p->devices = devices;
  if (cut) {
    name_nodes(*g);
    p->placement = cut->placement;
    p->split = cut->how;
    p->nonnegative = cut->nonnegative;
  }
  const chunk_assignment given = place_and_insert(*g, *p);
  cut_chunks(*p, g, given);
  if (may_adjust(*p))
    move_boundaries(*p, g);
  complete(*p);
  return p;
}

std::shared_ptr<const plan> restore_plan(cut_program from) {
  // Tables by segment and device: more would be gigabytes. A model has at most `max_control_nodes` such devices and
  // segments.
  constexpr size_t most_lifetimes = (limits::max_control_nodes + 64) * (limits::max_control_nodes + 64);
  auto p = std::make_shared<plan>();
  p->devices = std::move(from.devices);
  p->placement = std::move(from.placement);
  p->inserted = std::move(from.inserted);
  try {
    cut_chunks(*p, from.program, from.chunk_of_node);
    if (p->segment_count * p->devices.size() > most_lifetimes)
      fail(errc::unsupported, "{} segments and {} devices are too many", p->segment_count, p->devices.size());
    complete(*p);
    verify_chunks(*p);
  } catch (const error& e) {
    fail(e.code() == errc::internal ? errc::invalid_plan : e.code(), "a plan cannot be made again: {}", e.what());
  }
  return p;
}

} // namespace troupe
