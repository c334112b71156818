#include "monitoring/replay.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

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

/// Plays a run's chunks one after the other, in the order of their ids. Returns when the last answer has come.
/// `end_of(c, ready_s)` returns when a chunk ends; all that it waits for, its device included, is there at `ready_s`.
template <class Run, class F>
double play(Run& run, F&& end_of) {
  std::vector<double> ends(run.chunks.size(), 0); // by chunk, on its device
  std::map<device_index, double> is_free;
  uint32_t segment = 0;
  double segment_begin = 0, last_answer = 0;
  for (chunk_id id = 0; id < run.chunks.size(); ++id) {
    auto& c = run.chunks[id];
    if (std::exchange(segment, c.segment) != c.segment)
      segment_begin = last_answer;
    double ready = std::max(segment_begin, is_free[c.device]);
    for (chunk_id before : c.predecessors) {
      const replayed_chunk& b = run.chunks[before];
      ready = std::max(ready, ends[before] + (b.device == c.device ? 0 : b.answer_s));
    }
    ends[id] = is_free[c.device] = end_of(c, ready);
    last_answer = std::max(last_answer, ends[id] + c.answer_s);
  }
  return last_answer;
}

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
  const double answered = play(run, [](replayed_chunk& c, double ready) {
    c.lead_s = c.begin_s - ready;
    return c.begin_s + c.busy_s();
  });
  run.tail_s = static_cast<double>(trace.end_ns - trace.begin_ns) * 1e-9 - answered;
  return run;
}

double makespan(const replayed_run& run) {
  const auto end_of = [](const replayed_chunk& c, double ready) {
    return std::max(ready + c.lead_s, 0.0) + c.busy_s();
  };
  return play(run, end_of) + run.tail_s;
}

} // namespace troupe::monitoring
