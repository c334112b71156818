#include "trace/memory_counter.hpp"

#include "plan/bind/lifetimes.hpp"
#include "plan/bind/memory.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// When what a trace says of chunks and nodes began and ended.
class traced_times {
public:
  explicit traced_times(const run_trace& trace)
      : chunks_(trace.source->chunks.size(), nullptr), nodes_(trace.source->program->nodes.size(), nullptr) {
    for (const chunk_trace& c : trace.chunks) {
      chunks_[c.chunk] = &c;
      for (const device_timing& t : c.timings)
        if (t.kind == device_timing::work::node)
          nodes_[static_cast<size_t>(t.id)] = &t;
    }
  }

  const chunk_trace* chunk(chunk_id c) const { return chunks_[c]; }
  const device_timing* node(node_id n) const { return nodes_[static_cast<size_t>(n)]; }

  int64_t begin(chunk_id c) const {
    int64_t at = chunks_[c]->timings.empty() ? chunks_[c]->sent_ns : INT64_MAX;
    for (const device_timing& t : chunks_[c]->timings)
      at = std::min(at, t.begin_ns);
    return at;
  }

  int64_t end(chunk_id c) const {
    int64_t at = chunks_[c]->timings.empty() ? chunks_[c]->ended_ns : INT64_MIN;
    for (const device_timing& t : chunks_[c]->timings)
      at = std::max(at, t.end_ns);
    return at;
  }

private:
  std::vector<const chunk_trace*> chunks_;
  std::vector<const device_timing*> nodes_;
};

/// Walks the positions of one device in one segment, as `find_lifetimes` counts them, and says when each began.
class position_walk {
public:
  position_walk(const plan& p, const traced_times& times, const std::vector<int64_t>& live, counter_steps& steps)
      : p_(p), times_(times), live_(live), steps_(steps) {}

  void chunk(chunk_id id) {
    position(times_.begin(id));
    for_each_step(p_.chunks[id], [&](std::span<const node_id> nodes) {
      int64_t begin = INT64_MAX, end = at_;
      for (node_id n : nodes)
        if (const device_timing* t = times_.node(n)) { // views take no time
          begin = std::min(begin, t->begin_ns);
          end = std::max(end, t->end_ns);
        }
      position(begin == INT64_MAX ? at_ : begin);
      worked_until_ = std::max(worked_until_, end);
    });
    position(worked_until_);
    worked_until_ = std::max(worked_until_, times_.end(id));
  }

  /// After the last chunk nothing is held.
  void end() { set(std::max(at_, worked_until_), 0); }

private:
  void position(int64_t at) { set(std::max(at_, at), live_[position_++]); }

  void set(int64_t at, int64_t bytes) {
    at_ = at;
    steps_[at] += bytes - held_;
    held_ = bytes;
  }

  const plan& p_;
  const traced_times& times_;
  const std::vector<int64_t>& live_;
  counter_steps& steps_;
  size_t position_ = 0;
  int64_t at_ = INT64_MIN, worked_until_ = INT64_MIN, held_ = 0;
};

void add_arena(const run_trace& trace, const traced_times& times, uint32_t segment, device_index d,
               counter_steps& steps) {
  const plan& p = *trace.source;
  const std::vector<int64_t>& live = trace.memory[segment].live[d];
  position_walk walk(p, times, live, steps);
  bool any = false;
  for (chunk_id c = p.segment_begin[segment]; c < p.segment_begin[segment + 1]; ++c)
    if (p.chunks[c].device == d && times.chunk(c)) {
      walk.chunk(c);
      any = true;
    }
  if (any)
    walk.end();
}

/// Adds the values that chunks of devices in the host's memory make for others.
void add_leaving(const run_trace& trace, const traced_times& times, std::vector<memory_steps>& devices) {
  const plan& p = *trace.source;
  std::map<std::pair<device_index, value_id>, std::pair<int64_t, int64_t>> held; // from, until
  for (const transfer& t : p.transfers) {
    if (!t.from || !times.chunk(*t.from) || !p.devices[p.chunks[*t.from].device].host_memory)
      continue;
    const value_id root = root_on(p, p.chunks[*t.from], t.value);
    const device_timing* made = p.producer[root] < 0 ? nullptr : times.node(p.producer[root]);
    const int64_t until = t.to && times.chunk(*t.to) ? times.end(*t.to) : trace.end_ns;
    const auto [found, is_new] =
        held.try_emplace({p.chunks[*t.from].device, root}, made ? made->begin_ns : times.begin(*t.from), until);
    found->second.second = std::max(found->second.second, until);
  }
  for (const auto& [what, when] : held) {
    const uint32_t segment = p.segment_of_value[what.second];
    const bool known = segment < trace.memory.size() && !trace.memory[segment].value_bytes.empty();
    const int64_t bytes = known ? trace.memory[segment].value_bytes[static_cast<size_t>(what.second)] : 0;
    devices[what.first].leaving[when.first] += bytes;
    devices[what.first].leaving[std::max(when.second, when.first)] -= bytes;
  }
}

} // namespace

void add_memory(std::vector<segment_memory>& segments, const arena_layout& layout) {
  if (segments.size() > layout.segment)
    return;
  segments.resize(layout.segment + 1);
  segment_memory& memory = segments.back();
  memory.value_bytes = layout.bytes;
  for (size_t d = 0; d < layout.memory.size(); ++d) {
    const device_lifetimes& lifetimes = layout.source->lifetimes[layout.segment * layout.memory.size() + d];
    memory.live.push_back(live_bytes(lifetimes, layout.memory[d], layout.bytes));
  }
}

void add_memory(const run_trace& trace, std::vector<memory_steps>& devices) {
  const traced_times times(trace);
  for (uint32_t segment = 0; segment < trace.memory.size(); ++segment)
    for (device_index d = 0; d < devices.size() && d < trace.memory[segment].live.size(); ++d)
      add_arena(trace, times, segment, d, devices[d].values);
  add_leaving(trace, times, devices);
}

timeline_counter counter_of(uint32_t lane, std::string name,
                            const std::vector<std::pair<std::string, const counter_steps*>>& series, int64_t begin_ns) {
  timeline_counter counter{.lane = lane, .name = std::move(name)};
  std::map<int64_t, std::vector<int64_t>> changes; // by time and series
  changes[0].resize(series.size());
  for (size_t s = 0; s < series.size(); ++s) {
    counter.series.push_back(series[s].first);
    for (const auto& [at, by] : *series[s].second) {
      std::vector<int64_t>& now = changes[std::max<int64_t>(at - begin_ns, 0)];
      now.resize(series.size());
      now[s] += by;
    }
  }
  std::vector<int64_t> sum(series.size(), 0);
  for (const auto& [at, by] : changes) {
    for (size_t s = 0; s < sum.size(); ++s)
      sum[s] += by[s];
    if (counter.points.empty() || counter.points.back().values != sum)
      counter.points.push_back({at, sum});
  }
  return counter;
}

} // namespace troupe
