#include "trace/memory_counter.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace troupe {
namespace {

/// Lane 0 is the run and its control flow, lane d + 1 the device of that index. Real devices have the same index in all
/// plans of a run.
using lane_index = uint32_t;
constexpr lane_index run_lane = 0;

/// A range of time.
struct span_ns {
  int64_t begin = 0, end = 0;
};

/// When a device worked on a chunk: from its first node to its last. A chunk without nodes lasts as long as its moves;
/// if the device says nothing, the chunk lasts from its sending to its answer.
span_ns working_time(const chunk_trace& c) {
  std::optional<span_ns> nodes, all;
  const auto widen = [](std::optional<span_ns>& s, const device_timing& t) {
    s = s ? span_ns{std::min(s->begin, t.begin_ns), std::max(s->end, t.end_ns)} : span_ns{t.begin_ns, t.end_ns};
  };
  for (const device_timing& t : c.timings) {
    widen(all, t);
    if (t.kind == device_timing::work::node)
      widen(nodes, t);
  }
  return nodes ? *nodes : all ? *all : span_ns{c.sent_ns, c.ended_ns};
}

/// A chunk of the model's plan or of a body's.
struct traced_chunk {
  const plan& source;
  const chunk_trace& trace;
  std::string name;
  uint32_t bar = 0; // the one that shows it

  const chunk& planned() const { return source.chunks[trace.chunk]; }
  bool is_control() const { return source.devices[planned().device].kind == device_kind::control; }
  lane_index lane() const { return is_control() ? run_lane : planned().device + 1; }
};

/// One thing that a device did, and for which chunk.
struct traced_timing {
  traced_chunk* chunk;
  const device_timing* timing;
};

class timeline_maker {
public:
  explicit timeline_maker(const run_trace& trace) : trace_(trace), plan_(*trace.source) { collect(trace); }

  timeline make() {
    t_.end_ns = trace_.end_ns - trace_.begin_ns;
    add_lanes();
    for (lane_index l = 0; l < t_.lanes.size(); ++l)
      add_tracks(l);
    for (const auto& [first, end] : ranges_)
      add_edges(first, end);
    for (lane_index l = run_lane + 1; l < t_.lanes.size(); ++l)
      add_counters(l);
    return std::move(t_);
  }

private:
  /// Collects the chunks of a run, then those of its bodies; edges join those of one plan.
  void collect(const run_trace& run) {
    const size_t first = chunks_.size();
    for (const chunk_trace& c : run.chunks)
      chunks_.push_back({*run.source, c, fmt::format("{}{}chunk {}", run.name, run.name.empty() ? "" : ": ", c.chunk)});
    ranges_.emplace_back(first, chunks_.size());
    runs_.push_back(&run);
    for (const run_trace& body : run.bodies)
      collect(body);
  }

  void add_lanes() {
    t_.lanes.push_back({"run", ""});
    for (const device_info& d : plan_.devices)
      if (d.kind != device_kind::control) // those come last
        t_.lanes.push_back({d.name, d.host});
  }

  /// Gives a lane a track for its chunks, every timing a track of its queue on which nothing else runs at that time.
  void add_tracks(lane_index lane) {
    const auto own = static_cast<uint32_t>(t_.tracks.size());
    t_.tracks.push_back({lane, t_.lanes[lane].name});
    if (lane == run_lane)
      t_.bars.push_back({.track = own, .kind = bar_kind::run, .name = "run", .end_ns = t_.end_ns});
    std::map<uint32_t, std::vector<traced_timing>> queues;
    for (traced_chunk& c : chunks_)
      if (c.lane() == lane) {
        if (!c.is_control()) // control flow has no bar of its chunk: its node's says all
          add_chunk(c, own);
        for (const device_timing& t : c.trace.timings)
          queues[t.queue].push_back({&c, &t});
      }
    for (auto& [queue, timings] : queues)
      add_queue(lane, timings,
                lane == run_lane ? "control flow" : fmt::format("{}, queue {}", t_.lanes[lane].name, queue));
  }

  void add_chunk(traced_chunk& c, uint32_t track) {
    const span_ns time = working_time(c.trace);
    c.bar = static_cast<uint32_t>(t_.bars.size());
    t_.bars.push_back({.track = track,
                       .kind = bar_kind::chunk,
                       .name = c.name,
                       .begin_ns = since_begin(time.begin),
                       .end_ns = since_begin(time.end),
                       .chunk = c.trace.chunk,
                       .segment = c.planned().segment,
                       .node_count = static_cast<int64_t>(c.planned().nodes.size()),
                       .sent_ns = since_begin(c.trace.sent_ns),
                       .answered_ns = since_begin(c.trace.ended_ns)});
  }

  void add_queue(lane_index lane, std::vector<traced_timing>& timings, const std::string& name) {
    std::stable_sort(timings.begin(), timings.end(), [](const traced_timing& a, const traced_timing& b) {
      return a.timing->begin_ns < b.timing->begin_ns;
    });
    std::vector<std::pair<int64_t, uint32_t>> tracks; // with the time until which each is busy
    for (const traced_timing& w : timings) {
      auto free =
          std::find_if(tracks.begin(), tracks.end(), [&](const auto& t) { return t.first <= w.timing->begin_ns; });
      if (free == tracks.end()) {
        const std::string beside = tracks.empty() ? "" : fmt::format(", beside it {}", tracks.size());
        free = tracks.insert(free, {0, static_cast<uint32_t>(t_.tracks.size())});
        t_.tracks.push_back({lane, name + beside});
      }
      free->first = w.timing->end_ns;
      add_timing(w, free->second);
    }
  }

  void add_timing(const traced_timing& w, uint32_t track) {
    const device_timing& t = *w.timing;
    const graph& program = *w.chunk->source.program;
    if (w.chunk->is_control() && &t == w.chunk->trace.timings.data())
      w.chunk->bar = static_cast<uint32_t>(t_.bars.size());
    timeline_bar& bar = t_.bars.emplace_back();
    bar.track = track;
    bar.begin_ns = since_begin(t.begin_ns);
    bar.end_ns = since_begin(t.end_ns);
    bar.chunk = w.chunk->trace.chunk;
    if (t.kind == device_timing::work::node) {
      const node& n = program.nodes.at(t.id);
      bar.kind = bar_kind::node;
      bar.op = operator_name(n);
      bar.name = n.name.empty() ? bar.op : n.name;
      bar.kernel = t.kernel;
      bar.node = t.id;
    } else {
      bar.kind = t.kind == device_timing::work::upload ? bar_kind::upload : bar_kind::download;
      bar.name = fmt::format("{} {}", to_string(bar.kind), program.values.at(t.id).name);
      bar.bytes = t.bytes;
    }
  }

  void add_edges(size_t first, size_t end) {
    std::map<chunk_id, const traced_chunk*> by_id;
    for (size_t i = first; i < end; ++i)
      if (!chunks_[i].is_control() || !chunks_[i].trace.timings.empty())
        by_id[chunks_[i].trace.chunk] = &chunks_[i];
    for (const auto& [chunk, to] : by_id)
      for (chunk_id p : to->planned().predecessors)
        if (const auto from = by_id.find(p); from != by_id.end())
          t_.edges.push_back({from->second->bar, to->bar});
  }

  void add_counters(lane_index lane) {
    if (memory_.empty()) {
      memory_.resize(plan_.devices.size());
      for (const run_trace* run : runs_)
        add_memory(*run, memory_);
    }
    add_memory_counter(lane);
    counter_steps queue;
    for (const traced_chunk& c : chunks_)
      if (c.lane() == lane) {
        ++queue[c.trace.sent_ns];
        --queue[c.trace.ended_ns];
      }
    if (!queue.empty())
      t_.counters.push_back(counter_of(lane, "queue", {{"chunks", &queue}}, trace_.begin_ns));
  }

  void add_memory_counter(lane_index lane) {
    const device_index d = lane - 1;
    const memory_steps& m = memory_[d];
    const int64_t held = plan_.weight_bytes[d] + weights_of_bodies(d);
    if (held == 0 && m.values.empty() && m.leaving.empty())
      return;
    const counter_steps weights{{trace_.begin_ns, held}};
    std::vector<std::pair<std::string, const counter_steps*>> series{{"weights", &weights}, {"values", &m.values}};
    if (!m.leaving.empty())
      series.emplace_back("leaving", &m.leaving);
    t_.counters.push_back(counter_of(lane, "memory", series, trace_.begin_ns));
  }

  /// Of each plan once.
  int64_t weights_of_bodies(device_index d) const {
    std::map<const plan*, int64_t> bytes;
    for (const run_trace* run : runs_)
      if (run != runs_.front() && d < run->source->weight_bytes.size())
        bytes[run->source.get()] = run->source->weight_bytes[d];
    int64_t sum = 0;
    for (const auto& [body, held] : bytes)
      sum += held;
    return sum;
  }

  int64_t since_begin(int64_t ns) const { return ns - trace_.begin_ns; }

  const run_trace& trace_;
  const plan& plan_;
  timeline t_;
  std::vector<traced_chunk> chunks_;
  std::vector<std::pair<size_t, size_t>> ranges_; // of `chunks_`: those of one execution
  std::vector<const run_trace*> runs_;
  std::vector<memory_steps> memory_; // by device
};

} // namespace

timeline timeline_of(const run_trace& trace) {
  expects(trace.source != nullptr, "timeline_of: the run was not traced");
  return timeline_maker(trace).make();
}

} // namespace troupe
