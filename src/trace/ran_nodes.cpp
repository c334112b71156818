#include "trace/ran_nodes.hpp"

#include <algorithm>

namespace troupe {
namespace {

void keep_each_once(std::vector<ran_read>& reads) {
  std::sort(reads.begin(), reads.end());
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
}

} // namespace

std::vector<ran_node> ran_nodes_of(const run_trace& trace) {
  expects(trace.source != nullptr, "ran_nodes_of: the run was not traced");
  const plan& p = *trace.source;
  std::vector<ran_node> all;
  for (const chunk_trace& c : trace.chunks)
    for (const device_timing& t : c.timings)
      if (t.kind == device_timing::work::node)
        all.push_back({t.id, p.chunks[c.chunk].device, p.chunks[c.chunk].segment, c.sent_ns, t.begin_ns, t.end_ns, {}});
  // Nodes are in topological order: one that took no time comes before those that read what it made.
  std::sort(all.begin(), all.end(), [](const ran_node& a, const ran_node& b) {
    return std::pair(a.begin_ns, a.node) < std::pair(b.begin_ns, b.node);
  });
  const size_t none = all.size();
  std::vector<size_t> places(p.program->nodes.size(), none);
  for (size_t i = 0; i < all.size(); ++i)
    places[static_cast<size_t>(all[i].node)] = i;
  std::vector<std::vector<ran_read>> reads(places.size());
  for (size_t n = 0; n < places.size(); ++n) {
    for (const value_id v : p.program->nodes[n].inputs) {
      const node_id maker = v < 0 ? -1 : p.producer[static_cast<size_t>(v)];
      if (maker < 0)
        continue;
      if (const size_t place = places[static_cast<size_t>(maker)]; place != none)
        reads[n].push_back({place, v});
      else
        reads[n].insert(reads[n].end(), reads[static_cast<size_t>(maker)].begin(),
                        reads[static_cast<size_t>(maker)].end());
    }
    keep_each_once(reads[n]);
  }
  for (ran_node& each : all)
    each.reads = reads[static_cast<size_t>(each.node)];
  return all;
}

std::string ran_name(const run_trace& trace, node_id n) {
  const node& ran = trace.source->program->nodes[static_cast<size_t>(n)];
  return ran.name.empty() ? operator_name(ran) : ran.name;
}

int64_t ran_bytes(const run_trace& trace, uint32_t segment, value_id v) {
  const auto at = static_cast<size_t>(v);
  const bool known = v >= 0 && segment < trace.memory.size() && at < trace.memory[segment].value_bytes.size();
  return known ? trace.memory[segment].value_bytes[at] : -1;
}

} // namespace troupe
