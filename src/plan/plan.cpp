#include "plan/plan.hpp"

#include "base/checked.hpp"
#include "plan/chunks.hpp"
#include "plan/layout.hpp"
#include "plan/lifetimes.hpp"
#include "plan/placement.hpp"
#include "plan/plan_key.hpp"
#include "plan/segments.hpp"
#include "plan/split_transfers.hpp"
#include "plan/waves.hpp"

#include <algorithm>
#include <set>

namespace troupe {
namespace {

bool is_sorted_topologically(const graph& g, std::span<const node_id> producer) {
  for (node_id n = 0; n < static_cast<node_id>(g.nodes.size()); ++n)
    for (value_id v : g.nodes[n].inputs)
      if (v != no_value && producer[v] >= n)
        return false;
  return true;
}

/// Every value that is computed, read or returned needs a rank.
void check_ranks(const graph& g) {
  const auto check = [&](value_id v, const std::string& where) {
    if (v != no_value && !g.values[v].dims)
      fail(errc::unsupported, "the rank of '{}' ({}) is not known", g.values[v].name, where);
  };
  for (const node& n : g.nodes)
    for (const auto* ids : {&n.inputs, &n.outputs})
      for (value_id v : *ids)
        if (v != no_value && !g.values[v].dims)
          check(v, describe(n));
  for (value_id v : g.outputs)
    check(v, "a graph output");
}

/// Returns a copy of the graph that has only what the outputs need, in topological order.
std::shared_ptr<graph> prepare(const graph& given) {
  if (given.outputs.empty())
    fail(errc::invalid_model, "the graph has no outputs, so there is nothing to run");
  validate(given);
  auto g = std::make_shared<graph>(given);
  if (!is_sorted_topologically(*g, adjacency_of(*g).producer))
    sort_topologically(*g);
  remove_dead(*g);
  check_ranks(*g);
  return g;
}

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

} // namespace

std::shared_ptr<const plan> make_plan(const std::shared_ptr<const graph>& program, std::vector<device_info> devices,
                                      const plan_options& options) {
  if (devices.empty())
    fail(errc::invalid_argument, "a plan needs at least one device");
  auto p = std::make_shared<plan>();
  const std::shared_ptr<graph> g = prepare(*program);
  p->key = plan_key(hash_of(*program), devices, options);
  p->devices = std::move(devices);
  p->policy = options.policy;
  p->placement = place(*g, p->devices, options);
  split_transfers(*g, p->placement, p->devices);
  assign_layouts(*g, p->placement, p->devices);
  adjacency edges = adjacency_of(*g);
  segmentation segments = find_segments(*g, edges.producer);
  p->chunks = build_chunks(*g, edges, p->placement, segments);
  p->segment_count = segments.count;
  p->storage = find_storage(*g, edges.producer, p->placement, segments.of_node);
  p->program = g;
  p->producer = std::move(edges.producer);
  p->segment_of_value = std::move(segments.of_value);
  p->symbols = std::move(segments.symbols);
  index_chunks(*p);
  order_by_wave(*p);
  compile_dims(*p);
  find_known_values(*p);
  sum_weights(*p);
  p->lifetimes = find_lifetimes(*p);
  return p;
}

} // namespace troupe
