#include "monitor/replay.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace troupe::monitoring {
namespace {

/// What a device does; of two at once the earlier one here counts.
enum part : uint8_t { working, moving, taking_inputs, giving_outputs, part_count };

/// Says what the moves of a plan's chunks are for.
class move_kinds {
public:
  explicit move_kinds(const plan& p) {
    for (const transfer& t : p.transfers) {
      if (!t.from && t.to)
        inputs_.emplace(t.value, *t.to);
      if (t.from && !t.to)
        outputs_.insert(t.value);
    }
  }

  part of(chunk_id c, const device_timing& t) const {
    if (t.kind == device_timing::work::node)
      return working;
    if (t.kind == device_timing::work::upload)
      return inputs_.contains({t.id, c}) ? taking_inputs : moving;
    return outputs_.contains(t.id) ? giving_outputs : moving;
  }

private:
  std::set<std::pair<value_id, chunk_id>> inputs_;
  std::set<value_id> outputs_;
};

/// Returns the seconds of each part of a chunk, every moment counted once.
std::array<double, part_count> seconds_of_parts(const chunk_trace& c, const move_kinds& kinds) {
  struct edge {
    int64_t at_ns;
    part what;
    int step;
  };
  std::vector<edge> edges;
  for (const device_timing& t : c.timings) {
    const part what = kinds.of(c.chunk, t);
    edges.push_back({t.begin_ns, what, 1});
    edges.push_back({t.end_ns, what, -1});
  }
  std::sort(edges.begin(), edges.end(), [](const edge& a, const edge& b) { return a.at_ns < b.at_ns; });
  std::array<double, part_count> seconds{};
  std::array<int, part_count> open{};
  for (size_t i = 0; i < edges.size(); ++i) {
    const auto now = std::find_if(open.begin(), open.end(), [](int n) { return n > 0; });
    if (i > 0 && now != open.end())
      seconds[static_cast<size_t>(now - open.begin())] +=
          static_cast<double>(edges[i].at_ns - edges[i - 1].at_ns) * 1e-9;
    open[edges[i].what] += edges[i].step;
  }
  return seconds;
}

/// When chunks end as they are played through one after the other, in the order of their ids.
class replayer {
public:
  explicit replayer(size_t chunks) : ends_(chunks, 0) {}

  /// Returns when everything is there that a chunk waits for, its device included.
  double ready(const replayed_run& run, const replayed_chunk& c) {
    if (c.segment != segment_) {
      segment_ = c.segment;
      segment_begin_ = last_answer_;
    }
    double at = std::max(segment_begin_, free_[c.device]);
    for (chunk_id before : c.predecessors) {
      const replayed_chunk& b = run.chunks[before];
      at = std::max(at, ends_[before] + (b.device == c.device ? 0 : b.answer_s));
    }
    return at;
  }

  void end(chunk_id id, const replayed_chunk& c, double at) {
    ends_[id] = free_[c.device] = at;
    last_answer_ = std::max(last_answer_, at + c.answer_s);
  }

  double last_answer() const { return last_answer_; }

private:
  std::vector<double> ends_; // by chunk, on its device
  std::map<device_index, double> free_;
  uint32_t segment_ = 0;
  double segment_begin_ = 0, last_answer_ = 0;
};

/// Fills in what one chunk's own trace says.
void measure(replayed_chunk& c, const chunk_trace& trace, int64_t run_begin_ns, const move_kinds& kinds) {
  int64_t begin_ns = trace.sent_ns, end_ns = trace.ended_ns;
  if (!trace.timings.empty()) {
    begin_ns = INT64_MAX;
    end_ns = INT64_MIN;
    for (const device_timing& t : trace.timings) {
      begin_ns = std::min(begin_ns, t.begin_ns);
      end_ns = std::max(end_ns, t.end_ns);
    }
  }
  const auto parts = seconds_of_parts(trace, kinds);
  c.work_s = parts[working];
  c.move_s = parts[moving];
  c.input_s = parts[taking_inputs];
  c.output_s = parts[giving_outputs];
  c.pause_s = 0;
  c.pause_s = static_cast<double>(end_ns - begin_ns) * 1e-9 - c.busy_s();
  c.answer_s = static_cast<double>(trace.ended_ns - end_ns) * 1e-9;
  c.begin_s = static_cast<double>(begin_ns - run_begin_ns) * 1e-9;
}

} // namespace

replayed_run replay_of(const run_trace& trace) {
  const plan& p = *trace.source;
  const move_kinds kinds(p);
  replayed_run run;
  for (const chunk& c : p.chunks)
    run.chunks.push_back({.device = c.device, .segment = c.segment, .predecessors = c.predecessors});
  for (const chunk_trace& c : trace.chunks)
    measure(run.chunks[c.chunk], c, trace.begin_ns, kinds);
  replayer played(run.chunks.size());
  for (chunk_id id = 0; id < run.chunks.size(); ++id) {
    replayed_chunk& c = run.chunks[id];
    c.lead_s = c.begin_s - played.ready(run, c);
    played.end(id, c, c.begin_s + c.busy_s());
  }
  run.tail_s = static_cast<double>(trace.end_ns - trace.begin_ns) * 1e-9 - played.last_answer();
  return run;
}

double makespan(const replayed_run& run) {
  replayer played(run.chunks.size());
  for (chunk_id id = 0; id < run.chunks.size(); ++id) {
    const replayed_chunk& c = run.chunks[id];
    played.end(id, c, std::max(played.ready(run, c) + c.lead_s, 0.0) + c.busy_s());
  }
  return played.last_answer() + run.tail_s;
}

} // namespace troupe::monitoring
