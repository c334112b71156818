#include "plan/cut/waves.hpp"

#include "base/topological_order.hpp"
#include "ops/op.hpp"
#include "plan/cut/joined_parts.hpp"

#include <algorithm>
#include <new>

namespace troupe {
namespace {

constexpr uint32_t nothing = UINT32_MAX;

/// Sizes a scratch array, which keeps its storage; a failed reservation becomes an `error`.
void resize(std::vector<uint32_t>& array, size_t size, uint32_t fill) {
  try {
    array.assign(size, fill);
  } catch (const std::exception&) {
    fail(errc::out_of_memory, "the barrier planner cannot reserve {} bytes; plan fewer items at once",
         size * sizeof(uint32_t));
  }
}

void check_count(size_t count, const char* what) {
  if (count >= nothing)
    fail(errc::invalid_argument, "{} {} are more than the barrier planner counts; plan fewer at once", count, what);
}

void check_item(uint32_t item, uint32_t count, const char* end) {
  if (item >= count)
    fail(errc::invalid_argument, "a hazard's {} is item {}, but there are {}; check the indices", end, item, count);
}

void check_accesses(const item_accesses& a) {
  const auto ascends = [](const std::vector<uint32_t>& begin, size_t end) {
    return begin.front() == 0 && begin.back() == end && std::is_sorted(begin.begin(), begin.end());
  };
  const bool sizes = !a.read_begin.empty() && a.read_begin.size() == a.write_begin.size();
  if (!sizes || !ascends(a.read_begin, a.reads.size()) || !ascends(a.write_begin, a.writes.size()))
    fail(errc::invalid_argument, "the accesses' ranges are not ascending; end every item once");
}

/// Builds the CSR lists of dependents and counts what each item waits for.
void build_edges(uint32_t item_count, std::span<const hazard> hazards, wave_scratch& s) {
  resize(s.edge_begin, size_t{item_count} + 1, 0);
  resize(s.missing, item_count, 0);
  resize(s.edges, hazards.size(), 0);
  for (const hazard& h : hazards) {
    check_item(h.before, item_count, "first end");
    check_item(h.after, item_count, "second end");
    ++s.edge_begin[h.before + 1];
    ++s.missing[h.after];
  }
  for (uint32_t i = 0; i < item_count; ++i)
    s.edge_begin[i + 1] += s.edge_begin[i];
  // Filling moves each start to the next one; shifting by one item restores them.
  for (const hazard& h : hazards)
    s.edges[s.edge_begin[h.before]++] = h.after;
  for (uint32_t i = item_count; i > 0; --i)
    s.edge_begin[i] = s.edge_begin[i - 1];
  s.edge_begin[0] = 0;
}

[[noreturn]] void report_cycle(uint32_t item_count, std::span<const hazard> hazards, const item_namer& name) {
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (const hazard& h : hazards)
    edges.emplace_back(h.before, h.after);
  fail(errc::invalid_model,
       "items wait for each other in a cycle, each for the one before, the first for the last: {}; break it",
       cycle_text(find_cycle(item_count, edges), name));
}

/// Sorts the items by wave, ascending within one.
void group_by_wave(uint32_t wave_count, wave_plan& out) {
  resize(out.wave_begin, size_t{wave_count} + 1, 0);
  resize(out.items, out.wave_of.size(), 0);
  for (uint32_t wave : out.wave_of)
    ++out.wave_begin[wave + 1];
  for (uint32_t w = 0; w < wave_count; ++w)
    out.wave_begin[w + 1] += out.wave_begin[w];
  for (uint32_t i = 0; i < out.wave_of.size(); ++i)
    out.items[out.wave_begin[out.wave_of[i]]++] = i;
  for (uint32_t w = wave_count; w > 0; --w)
    out.wave_begin[w] = out.wave_begin[w - 1];
  out.wave_begin[0] = 0;
}

} // namespace

void item_accesses::clear() {
  read_begin.assign(1, 0);
  write_begin.assign(1, 0);
  reads.clear();
  writes.clear();
}

void item_accesses::end_item() {
  check_count(reads.size(), "reads");
  check_count(writes.size(), "writes");
  read_begin.push_back(static_cast<uint32_t>(reads.size()));
  write_begin.push_back(static_cast<uint32_t>(writes.size()));
}

void find_hazards(const item_accesses& accesses, uint32_t resource_count, wave_scratch& s, std::vector<hazard>& hazards,
                  const item_namer& name) {
  check_accesses(accesses);
  resize(s.last_writer, resource_count, nothing);
  // Readers since the last write, as linked lists through one array.
  resize(s.reader_head, resource_count, nothing);
  resize(s.reader_next, accesses.reads.size(), nothing);
  resize(s.reader_item, accesses.reads.size(), 0);
  const auto check = [&](uint32_t item, uint32_t resource) {
    if (resource >= resource_count)
      fail(errc::invalid_argument, "{} uses resource {}, but there are {}; check the indices", name(item), resource,
           resource_count);
  };
  for (uint32_t i = 0; i < accesses.count(); ++i) {
    for (uint32_t r = accesses.read_begin[i]; r < accesses.read_begin[i + 1]; ++r) {
      const uint32_t resource = accesses.reads[r];
      check(i, resource);
      if (s.last_writer[resource] != nothing)
        hazards.push_back({s.last_writer[resource], i});
      s.reader_item[r] = i;
      s.reader_next[r] = s.reader_head[resource];
      s.reader_head[resource] = r;
    }
    for (uint32_t w = accesses.write_begin[i]; w < accesses.write_begin[i + 1]; ++w) {
      const uint32_t resource = accesses.writes[w];
      check(i, resource);
      for (uint32_t r = s.reader_head[resource]; r != nothing; r = s.reader_next[r])
        if (s.reader_item[r] != i)
          hazards.push_back({s.reader_item[r], i});
      if (s.last_writer[resource] != nothing && s.last_writer[resource] != i)
        hazards.push_back({s.last_writer[resource], i});
      s.reader_head[resource] = nothing;
      s.last_writer[resource] = i;
    }
  }
}

void plan_waves(uint32_t item_count, std::span<const hazard> hazards, wave_scratch& s, wave_plan& out,
                const item_namer& name) {
  check_count(item_count, "items");
  check_count(hazards.size(), "hazards");
  build_edges(item_count, hazards, s);
  resize(out.wave_of, item_count, 0);
  resize(s.queue, item_count, 0);
  uint32_t queued = 0, wave_count = item_count > 0 ? 1 : 0;
  for (uint32_t i = 0; i < item_count; ++i)
    if (s.missing[i] == 0)
      s.queue[queued++] = i;
  uint32_t planned = 0;
  for (; planned < queued; ++planned) {
    const uint32_t item = s.queue[planned];
    for (uint32_t e = s.edge_begin[item]; e < s.edge_begin[item + 1]; ++e) {
      const uint32_t next = s.edges[e];
      out.wave_of[next] = std::max(out.wave_of[next], out.wave_of[item] + 1);
      if (--s.missing[next] == 0) {
        wave_count = std::max(wave_count, out.wave_of[next] + 1);
        s.queue[queued++] = next;
      }
    }
  }
  if (planned < item_count)
    report_cycle(item_count, hazards, name);
  group_by_wave(wave_count, out);
}

void plan_waves(const plan& p, const chunk& c, wave_scratch& s, wave_plan& out) {
  s.accesses.clear();
  s.hazards.clear();
  // Resources are numbered within the chunk, so that a small chunk of a large graph stays cheap.
  if (s.resource_of.size() < p.program->values.size())
    resize(s.resource_of, p.program->values.size(), nothing);
  s.numbered.clear();
  const auto resource = [&](value_id v) {
    uint32_t& number = s.resource_of[v];
    if (number == nothing) {
      number = static_cast<uint32_t>(s.numbered.size());
      s.numbered.push_back(static_cast<uint32_t>(v));
    }
    return number;
  };
  for (node_id n : c.nodes) {
    const node& call = p.program->nodes[n];
    if (!launches_nothing(p, call)) {
      for (value_id v : call.inputs)
        if (v != no_value)
          for_each_written(p, root_on(p, c, v), [&](value_id written) { s.accesses.add_read(resource(written)); });
      for (value_id v : call.outputs)
        if (v != no_value)
          s.accesses.add_write(resource(v));
    }
    s.accesses.end_item();
  }
  const item_namer name = [&](uint32_t item) { return describe(p.program->nodes[c.nodes[item]]); };
  find_hazards(s.accesses, static_cast<uint32_t>(s.numbered.size()), s, s.hazards, name);
  plan_waves(s.accesses.count(), s.hazards, s, out, name);
  for (uint32_t i = 0; i < c.nodes.size(); ++i)
    if (const node& call = p.program->nodes[c.nodes[i]]; launches_nothing(p, call)) {
      out.wave_of[i] = 0;
      for_each_written(p, root_on(p, c, call.outputs[0]), [&](value_id written) {
        const uint32_t bytes = s.resource_of[written];
        if (const uint32_t maker = bytes == nothing ? nothing : s.last_writer[bytes]; maker != nothing)
          out.wave_of[i] = std::max(out.wave_of[i], out.wave_of[maker]);
      });
    }
  group_by_wave(out.wave_count(), out);
  for (uint32_t v : s.numbered)
    s.resource_of[v] = nothing;
}

void order_by_wave(plan& p) {
  wave_scratch scratch;
  wave_plan waves;
  std::vector<node_id> ordered;
  for (chunk& c : p.chunks) {
    if (p.devices[c.device].host_memory)
      continue;
    plan_waves(p, c, scratch, waves);
    ordered.clear();
    for (uint32_t item : waves.items)
      ordered.push_back(c.nodes[item]);
    c.nodes = ordered;
    c.wave_begin = waves.wave_begin;
  }
}

uint32_t widest_wave(const plan& p, const chunk& c) {
  uint32_t widest = 0;
  for (uint32_t w = 0; w < c.wave_count(); ++w) {
    const auto nodes = c.wave(w);
    const auto count =
        std::count_if(nodes.begin(), nodes.end(), [&](node_id n) { return !launches_nothing(p, p.program->nodes[n]); });
    widest = std::max(widest, static_cast<uint32_t>(count));
  }
  return widest;
}

scratch_plan plan_scratch(std::span<const uint32_t> wave_begin, std::span<const int64_t> needed, int64_t budget,
                          const item_namer& name) {
  scratch_plan out{{0}, std::vector<int64_t>(needed.size(), 0), 0};
  for (size_t w = 0; w + 1 < wave_begin.size(); ++w) {
    int64_t used = 0;
    for (uint32_t i = wave_begin[w]; i < wave_begin[w + 1]; ++i) {
      if (needed[i] > budget)
        fail(errc::out_of_memory,
             "scratch memory: {} needs {} bytes, {} bytes allowed; use smaller dims or another device", name(i),
             needed[i], budget);
      if (needed[i] > budget - used) { // the rest of the wave runs after a barrier of its own
        out.wave_begin.push_back(i);
        used = 0;
      }
      out.offset[i] = used;
      used += needed[i];
      out.bytes = std::max(out.bytes, used);
    }
    out.wave_begin.push_back(wave_begin[w + 1]);
  }
  return out;
}

} // namespace troupe
